import type { ReactNode } from 'react'
import { Icon } from './Icon'
import styles from './Table.module.css'

export interface Column<T> {
  key: string
  head: ReactNode
  cell: (row: T) => ReactNode
  /** The server's name of the order, where it can sort by this column. */
  sort?: string
  num?: boolean
  /** Narrow: no wider than its content. */
  fit?: boolean
  /** On a card: without its label. */
  plain?: boolean
}

interface Props<T> {
  label: string
  columns: Column<T>[]
  rows: T[]
  id: (row: T) => string
  sort?: string | undefined
  onSort?: (sort: string) => void
  total?: number | undefined
  active?: string | undefined
  onActivate?: (row: T) => void
  rowProps?: (row: T) => { 'data-off'?: boolean }
}

/** A real table; below 720 px each row is a card. `-name` sorts downwards. */
export function Table<T>({ label, columns, rows, id, sort, onSort, total, active, onActivate, rowProps }: Props<T>) {
  const direction = (name: string | undefined) => (name === undefined || !sort ? undefined : sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined)
  return (
    <table className={styles.table} aria-label={label} aria-rowcount={total !== undefined ? total + 1 : undefined}>
      <thead>
        <tr>
          {columns.map((column) => {
            const order = direction(column.sort)
            return (
              <th key={column.key} scope="col" className={[column.num && styles.num, column.fit && styles.fit].filter(Boolean).join(' ')} aria-sort={column.sort ? (order ?? 'none') : undefined}>
                {column.sort && onSort ? (
                  <button type="button" className={styles.sort} onClick={() => onSort(order === 'ascending' ? `-${column.sort}` : (column.sort ?? ''))}>
                    {column.head}
                    {order && <Icon name={order === 'ascending' ? 'up' : 'down'} size={12} />}
                  </button>
                ) : (
                  column.head
                )}
              </th>
            )
          })}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => {
          const key = id(row)
          return (
            <tr
              key={key}
              id={`row-${key}`}
              aria-rowindex={total !== undefined ? at + 2 : undefined}
              data-active={active === key || undefined}
              onClick={
                onActivate &&
                ((event) => {
                  if (!(event.target as Element).closest('a, button, input, label, select')) onActivate(row)
                })
              }
              {...rowProps?.(row)}
            >
              {columns.map((column) => (
                <td key={column.key} data-label={typeof column.head === 'string' && !column.plain ? column.head : undefined} className={[column.num && styles.num, column.fit && styles.fit].filter(Boolean).join(' ')}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
