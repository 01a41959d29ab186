import type { Facet, FleetFacets } from '../../api/types'
import { count } from '../../lib/format'
import { statusLook, type Role } from '../../lib/status'
import { To } from '../../parts/To'
import { useOrg } from '../../parts/org'
import styles from './Spread.module.css'

/** How the fleet is spread: by status, and by version. Every part is a filter. */
export function Spread({ facets }: { facets: FleetFacets }) {
  return (
    <section className={styles.box} aria-label="The fleet in numbers">
      <Bar title="Status" name="status" facets={facets.status} look={(it) => statusLook(it.value, 'component')} />
      <Bar title="Runners" name="runner" facets={facets.runner} look={(it) => statusLook(it.value, 'runner')} />
      {facets.health.some((it) => it.value !== 'unset') && <Bar title="Health" name="health" facets={facets.health} look={(it) => (it.value === 'unset' ? { role: 'neutral', word: 'not observed' } : statusLook(it.value, 'health'))} />}
      <Bar title="Versions" name="version" facets={versions(facets.version)} look={(it, at) => ({ role: at === 0 ? 'info' : 'neutral', word: it.name || (it.value === 'none' ? 'none' : `v${it.value}`) })} />
    </section>
  )
}

/** Newest first; the many small ones of a large fleet stay in the filter. */
function versions(all: Facet[]): Facet[] {
  return all.toSorted((a, b) => (Number(b.value) || -1) - (Number(a.value) || -1)).slice(0, 6)
}

function Bar({ title, name, facets, look }: { title: string; name: string; facets: Facet[]; look: (it: Facet, at: number) => { role: Role; word: string } }) {
  const org = useOrg()
  const shown = facets.filter((it) => it.count > 0)
  const total = shown.reduce((sum, it) => sum + it.count, 0)
  if (total === 0) return null
  return (
    <div className={styles.row}>
      <span className={styles.title}>{title}</span>
      <div className={styles.parts}>
        <div className={styles.bar} aria-hidden="true">
          {shown.map((it, at) => (
            <span key={it.value} className={styles[look(it, at).role]} style={{ flexGrow: it.count }} />
          ))}
        </div>
        <ul className={styles.words}>
          {shown.map((it, at) => {
            const { role, word } = look(it, at)
            return (
              <li key={it.value}>
                <To to={`${org.to.fleet}?${name}=${encodeURIComponent(it.value)}`} className={styles.link ?? ''}>
                  <span className={`${styles.swatch} ${styles[role]}`} aria-hidden="true" />
                  <bdi>{word}</bdi> <b>{count(it.count)}</b>
                </To>
              </li>
            )
          })}
        </ul>
      </div>
    </div>
  )
}
