import type { ComponentHealth } from '../../api/types'
import { statusLook } from '../../lib/status'
import styles from './Install.module.css'

const percent = (share: number | null | undefined) => (share === null || share === undefined ? '' : `${(share * 100).toFixed(share === 1 ? 0 : 2)} %`)

/** A bar a day; a day without observations is empty, not green. */
export function HealthBars({ days }: { days: ComponentHealth['days'] }) {
  const seen = days.filter((it) => it.verdict)
  const bad = seen.filter((it) => it.verdict === 'unhealthy' || it.verdict === 'degraded')
  return (
    <div className={styles.bars} role="img" aria-label={`${days.length} days: ${seen.length} observed, ${bad.length} with trouble${bad.length > 0 ? ` (${bad.slice(-5).map((it) => it.date).join(', ')})` : ''}`}>
      {days.map((it) => (
        <span key={it.date} className={`${styles.day} ${it.verdict ? (styles[it.verdict] ?? '') : ''}`} title={`${it.date}: ${it.verdict ? statusLook(it.verdict, 'health').word : 'not observed'} ${percent(it.uptime)}`} />
      ))}
    </div>
  )
}

export const uptime = percent
