import type { StateDiff } from '../../api/types'
import { Mark } from '../../base/Chip'
import { harmless } from '../../lib/ansi'
import { clip, plural } from '../../lib/format'
import styles from './Install.module.css'

const marks = { added: ['ok', 'plus'], removed: ['bad', 'minus'], changed: ['warn', 'tilde'] } as const

/** How two versions differ, path by path. */
export function StateChanges({ diff, title }: { diff: StateDiff; title: string }) {
  return (
    <div>
      <h3>{title}</h3>
      {diff.changes.length === 0 && <p className="muted">They are equal.</p>}
      <ul>
        {diff.changes.map((it) => {
          const [role, icon] = marks[it.change as keyof typeof marks] ?? ['neutral', 'dot']
          return (
            <li key={it.path} className={styles.change}>
              <Mark role={role} icon={icon}>
                {it.change}
              </Mark>
              <bdi className="mono">{it.path}</bdi>
              <span className="mono">
                {it.before !== undefined && <bdi className="muted">{harmless(clip(it.before, 300))}</bdi>}
                {it.before !== undefined && it.after !== undefined && ' → '}
                {it.after !== undefined && <bdi>{harmless(clip(it.after, 300))}</bdi>}
              </span>
            </li>
          )
        })}
      </ul>
      {(diff.omitted ?? 0) > 0 && <p className="muted small">{plural(diff.omitted ?? 0, 'more difference')} not listed.</p>}
    </div>
  )
}
