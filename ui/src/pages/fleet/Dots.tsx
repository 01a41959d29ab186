import type { FleetComponent } from '../../api/types'
import { Icon } from '../../base/Icon'
import { type Role, statusLook } from '../../lib/status'
import styles from './Fleet.module.css'

const worst: Role[] = ['odd', 'bad', 'ask', 'warn', 'info', 'neutral', 'ok']

function lookOf(it: FleetComponent) {
  if (it.disabled) return statusLook('disabled', 'component')
  const own = statusLook(it.status, 'component')
  return it.drifted && own.role === 'ok' ? statusLook('drifted') : own
}

/** The components of an install in one line, the troubled first. */
export function Dots({ components, most = 5 }: { components: FleetComponent[]; most?: number }) {
  const sorted = components.map((it) => ({ it, look: lookOf(it) })).sort((a, b) => worst.indexOf(a.look.role) - worst.indexOf(b.look.role))
  const shown = sorted.slice(0, most)
  const rest = sorted.slice(most)
  return (
    <span className={styles.dots}>
      {shown.map(({ it, look }) => (
        <span key={it.name} className={styles.dot} title={`${it.name}: ${look.word}`}>
          <span className={styles[look.role]}>
            <Icon name={look.icon} size={11} />
          </span>
          <bdi>{it.name}</bdi>
          <span className="visually-hidden"> {look.word}</span>
        </span>
      ))}
      {rest.length > 0 && (
        <span className="muted small nowrap" title={rest.map(({ it, look }) => `${it.name}: ${look.word}`).join('\n')}>
          +{rest.length} {rest.every(({ look }) => look.role === 'ok') ? 'live' : 'more'}
        </span>
      )}
    </span>
  )
}
