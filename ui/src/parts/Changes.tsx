import { Mark } from '../base/Chip'
import type { PlanChanges } from '../api/types'
import { signs } from './words'
import styles from './Changes.module.css'

/** The counts of a plan as signs with their words for who can't see them. */
export function Changes({ changes, loss = 0, warned = 0, denied = 0 }: { changes: PlanChanges | null | undefined; loss?: number | undefined; warned?: number | undefined; denied?: number | undefined }) {
  if (!changes) return null
  const shown = signs(changes)
  return (
    <span className={styles.row}>
      {loss > 0 && (
        <Mark role="bad" icon="bang">
          {loss} {loss === 1 ? 'holds' : 'hold'} data
        </Mark>
      )}
      {shown.length === 0 && <span className="muted">no changes</span>}
      {shown.map((it) => (
        <span key={it.text} className={`${styles.sign} ${styles[it.role]}`} title={it.words}>
          <span aria-hidden="true">{it.text}</span>
          <span className="visually-hidden">{it.words} </span>
        </span>
      ))}
      {denied > 0 && (
        <Mark role="bad" icon="denied">
          denied by policy
        </Mark>
      )}
      {warned > 0 && (
        <Mark role="warn" icon="bang">
          {warned} {warned === 1 ? 'warning' : 'warnings'}
        </Mark>
      )}
    </span>
  )
}
