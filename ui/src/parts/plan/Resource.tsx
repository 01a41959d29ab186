import { useState } from 'react'
import type { PlanResource } from '../../api/types'
import { Mark } from '../../base/Chip'
import type { Role } from '../../lib/status'
import { Attributes } from './Attributes'
import styles from './Plan.module.css'

const actions: Record<string, { sign: string; role: Role; word: string }> = {
  create: { sign: '+', role: 'ok', word: 'create' },
  update: { sign: '~', role: 'warn', word: 'update' },
  replace: { sign: '-/+', role: 'bad', word: 'replace' },
  destroy: { sign: '-', role: 'bad', word: 'destroy' },
  read: { sign: '<=', role: 'info', word: 'read' },
  forget: { sign: 'x', role: 'warn', word: 'forget' },
  import: { sign: '<-', role: 'info', word: 'import' },
  move: { sign: '->', role: 'neutral', word: 'move' },
}

/** One resource: what happens to it and why; its values when it is opened. */
export function Resource({ resource: it, module, open: opened }: { resource: PlanResource; module: string; open: boolean }) {
  const [open, setOpen] = useState(opened)
  const action = actions[it.action] ?? { sign: '?', role: 'neutral' as const, word: it.action }
  const name = module && it.address.startsWith(`${module}.`) ? it.address.slice(module.length + 1) : it.address
  const empty = (it.attributes?.length ?? 0) === 0 && (it.attributes_omitted ?? 0) === 0
  const head = (
    <>
      <span className={`${styles.sign} ${styles[action.role]}`} aria-hidden="true">
        {action.sign}
      </span>
      <span className="visually-hidden">{action.word} </span>
      <bdi className={styles.address} title={it.address}>
        {name}
      </bdi>
      {it.holds_data && (
        <Mark role="bad" icon="bang">
          holds data
        </Mark>
      )}
      <Why it={it} />
    </>
  )
  if (empty) return <div className={styles.resource}>{head}</div>
  return (
    <details className={styles.folder} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className={styles.resource}>{head}</summary>
      {open && <Attributes list={it.attributes ?? []} omitted={it.attributes_omitted ?? 0} gone={it.action === 'destroy'} />}
    </details>
  )
}

function Why({ it }: { it: PlanResource }) {
  const parts = [
    it.reason,
    it.previous_address && it.previous_address !== it.address ? `moved from ${it.previous_address}` : '',
    it.import_id ? `imports ${it.import_id}` : '',
    it.deposed ? `deposed object ${it.deposed}` : '',
    it.replace === 'create-first' ? 'creates the new one first' : it.replace === 'forget' ? 'forgets the old one' : '',
  ].filter(Boolean)
  if (parts.length === 0) return null
  return (
    <span className={styles.why} dir="auto">
      {parts.join('; ')}
    </span>
  )
}
