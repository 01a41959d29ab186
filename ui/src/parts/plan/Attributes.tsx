import { useState } from 'react'
import type { PlanAttribute, PlanHunk, PlanValue } from '../../api/types'
import { Button } from '../../base/Button'
import { Mark } from '../../base/Chip'
import { harmless } from '../../lib/ansi'
import { count, plural } from '../../lib/format'
import styles from './Plan.module.css'

const MANY = 40
const LONG = 300

/** Values before and after. A hidden secret still shows that it changes. */
export function Attributes({ list, omitted, gone = false }: { list: PlanAttribute[]; omitted: number; gone?: boolean }) {
  const [all, setAll] = useState(false)
  const shown = all ? list : list.slice(0, MANY)
  return (
    <div className={styles.attributes}>
      {shown.map((it) => (
        <div key={it.path} className={styles.attribute}>
          <bdi className={styles.path}>{it.path}</bdi>
          {it.hunks?.length ? (
            <Hunks hunks={it.hunks} />
          ) : (
            <span className={styles.values}>
              {it.before.is !== 'absent' && <Value value={it.before} side="before" />}
              {it.before.is !== 'absent' && it.after.is !== 'absent' && (
                <>
                  <span className="muted" aria-hidden="true">
                    →
                  </span>
                  <span className="visually-hidden">becomes</span>
                </>
              )}
              {it.after.is !== 'absent' && <Value value={it.after} side="after" />}
              {it.before.is !== 'absent' && it.after.is === 'absent' && !gone && <span className="muted small">removed</span>}
            </span>
          )}
          {it.forces_replacement && (
            <Mark role="bad" icon="replaced">
              forces replacement
            </Mark>
          )}
        </div>
      ))}
      {list.length > shown.length && (
        <Button small onClick={() => setAll(true)}>
          Show {list.length - shown.length} more values
        </Button>
      )}
      {omitted > 0 && <p className={styles.cut}>{plural(omitted, 'more value')} not listed.</p>}
    </div>
  )
}

function Value({ value, side }: { value: PlanValue; side: 'before' | 'after' }) {
  const [open, setOpen] = useState(false)
  if (value.is === 'sensitive') return <span className={styles.hidden}>{side === 'after' ? 'hidden, changes' : 'hidden'}</span>
  if (value.is === 'unknown') return <span className={styles.hidden}>known after apply</span>
  const text = harmless(value.text ?? '')
  const long = text.length > LONG && !open
  return (
    <span className={side === 'before' ? styles.before : styles.after}>
      <bdi>{long ? `${text.slice(0, LONG)}…` : text}</bdi>
      {long && (
        <Button small kind="quiet" onClick={() => setOpen(true)}>
          {count(text.length - LONG)} more characters
        </Button>
      )}
      {(value.cut_chars ?? 0) > 0 && !long && <span className={styles.cut}> cut: {plural(value.cut_chars ?? 0, 'more character')}</span>}
    </span>
  )
}

/** What changed in a text of several lines. */
export function Hunks({ hunks }: { hunks: PlanHunk[] }) {
  return (
    <div className={styles.hunks} tabIndex={0} role="group" aria-label="Changed lines">
      {hunks.map((hunk) => {
        let before = hunk.before_line
        let after = hunk.after_line
        return (
          <div key={`${hunk.before_line} ${hunk.after_line}`} className={styles.hunk}>
            {hunk.lines.map((line, at) => {
              const sign = line[0] ?? ' '
              const left = sign === '+' ? '' : String(before++)
              const right = sign === '-' ? '' : String(after++)
              return (
                <div key={at} className={sign === '+' ? styles.added : sign === '-' ? styles.removed : styles.same}>
                  <span className={styles.number}>{left}</span>
                  <span className={styles.number}>{right}</span>
                  <span className={styles.code}>
                    {sign} <bdi>{harmless(line.slice(1))}</bdi>
                  </span>
                </div>
              )
            })}
          </div>
        )
      })}
    </div>
  )
}
