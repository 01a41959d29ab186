import styles from './Tabs.module.css'
import { To } from './To'

/** Pages of one thing, as links. */
export function Tabs({ label, tabs }: { label: string; tabs: { to: string; name: string; exact?: boolean; count?: number | undefined }[] }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map((it) => (
        <To key={it.to} to={it.to} exact={it.exact ?? false} className={styles.tab ?? ''} activeClass={styles.here}>
          {it.name}
          {it.count ? <span className={styles.count}>{it.count}</span> : null}
        </To>
      ))}
    </nav>
  )
}
