import type { RunStep, RunView } from '../../api/types'
import { Icon } from '../../base/Icon'
import { useNow } from '../../base/Time'
import { statusLook } from '../../lib/status'
import { duration, parseTime } from '../../lib/time'
import { useState } from 'react'
import { Check } from '../../base/Field'
import { plural } from '../../lib/format'
import styles from './Run.module.css'

/** The steps in their order; their bars show when each ran, and how long. */
export function Rail({ run, selected, onSelect }: { run: RunView; selected: string | undefined; onSelect: (id: string) => void }) {
  const [all, setAll] = useState(false)
  const replaced = run.steps.filter((it) => it.replaced).length
  const shown = run.steps.filter((it) => all || !it.replaced || it.id === selected)
  const open = run.steps.some((it) => ['in-progress', 'approval-awaiting'].includes(it.status))
  const now = useNow(open ? 1 : 60)
  const started = parseTime(run.started_at) ?? parseTime(run.created_at) ?? now
  const span = Math.max(1, run.span_ms, open ? now - started : 0)
  return (
    <nav className={styles.rail} aria-label="Steps">
      <p className="muted small">
        {run.done ?? run.steps.filter((it) => it.finished_at).length} of {plural(run.total ?? shown.length, 'step')} done
      </p>
      <ol>
        {shown.map((it) => {
          const look = statusLook(it.status, 'step')
          const begin = parseTime(it.started_at)
          const running = ['in-progress', 'approval-awaiting'].includes(it.status) && begin !== undefined
          const took = running ? Math.max(0, now - begin) : (it.took_ms ?? 0)
          const offset = it.offset_ms ?? 0
          return (
            <li key={it.id}>
              <button type="button" className={it.id === selected ? `${styles.step} ${styles.selected}` : styles.step} aria-current={it.id === selected ? 'step' : undefined} data-replaced={it.replaced || undefined} onClick={() => onSelect(it.id)}>
                <span className={styles[look.role]}>
                  <Icon name={look.icon} size={14} />
                </span>
                <span className={styles.name}>
                  <bdi>{it.name}</bdi>
                  {it.attempt > 1 && <span className="muted small"> try {it.attempt}</span>}
                </span>
                <span className="visually-hidden">{look.word}</span>
                <span className={styles.took}>{took > 0 ? duration(took) : ''}</span>
                <span className={styles.track} aria-hidden="true">
                  {(took > 0 || running) && <span className={`${styles.bar} ${styles[`on-${look.role}`]}`} style={{ left: `${Math.min(99, (100 * offset) / span)}%`, width: `${Math.max(0.7, Math.min(100 - (100 * offset) / span, (100 * took) / span))}%` }} />}
                </span>
              </button>
            </li>
          )
        })}
      </ol>
      {replaced > 0 && <Check label={`Show ${plural(replaced, 'replaced attempt')}`} checked={all} onChange={(event) => setAll(event.target.checked)} />}
    </nav>
  )
}

/** Steps that a person has to look at first. */
export const troubled = (step: RunStep): boolean => ['error', 'unknown', 'approval-awaiting', 'approval-denied', 'approval-expired'].includes(step.status)
