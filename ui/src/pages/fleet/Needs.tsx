import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { attention } from '../../api/queries'
import type { RunningWorkflow } from '../../api/types'
import { Button } from '../../base/Button'
import { Mark } from '../../base/Chip'
import { Icon } from '../../base/Icon'
import { Time } from '../../base/Time'
import { plural } from '../../lib/format'
import { Loaded } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { To } from '../../parts/To'
import { attentionButton, attentionLook, attentionPlace, workflowName } from '../../parts/words'
import styles from './Needs.module.css'

const FEW = 5

/** What needs a person, the worst first, and what runs now. */
export function Needs() {
  const org = useOrg()
  const query = useQuery(attention(org.id))
  const [all, setAll] = useState(false)
  return (
    <section className={styles.box} aria-labelledby="needs">
      <h2 id="needs" className={styles.title}>
        Needs you
      </h2>
      <Loaded query={query} skeleton={<div className={styles.hold} />}>
        {(data) => (
          <>
            {data.items.length === 0 && (
              <p className={styles.calm}>
                <Icon name="check" /> Nothing waits for a person.
              </p>
            )}
            <ul>
              {(all ? data.items : data.items.slice(0, FEW)).map((it, at) => {
                const look = attentionLook(it.kind)
                return (
                  <li key={`${it.kind} ${it.install_id ?? ''} ${it.step_id ?? it.job_id ?? it.build_id ?? at}`} className={styles.item}>
                    <span className={styles.kind}>
                      <Mark role={look.role} icon={look.icon}>
                        {look.word}
                      </Mark>
                    </span>
                    <span className={styles.text}>
                      {it.install_id && (
                        <>
                          <To to={org.to.install(it.install_id)}>
                            <bdi>{it.install_name || it.install_id}</bdi>
                          </To>{' '}
                        </>
                      )}
                      <span dir="auto">{it.text}</span>{' '}
                      <span className="muted small">
                        <Time at={it.since} />
                      </span>
                    </span>
                    <To to={attentionPlace(org.to, it)} className={styles.button} aria-label={`${attentionButton(it)}: ${it.install_name ?? ''} ${it.text}`}>
                      {attentionButton(it)}
                    </To>
                  </li>
                )
              })}
            </ul>
            {data.items.length > FEW && (
              <p className="row">
                <Button kind="quiet" small onClick={() => setAll(!all)}>
                  {all ? 'Show fewer' : `Show all ${data.items.length}`}
                </Button>
                {(data.more || data.total > data.items.length) && <span className="muted small">{plural(data.total, 'thing')}{data.more ? ' or more' : ''}</span>}
              </p>
            )}
            <Running running={data.running} />
          </>
        )}
      </Loaded>
    </section>
  )
}

function Running({ running }: { running: RunningWorkflow[] }) {
  const org = useOrg()
  if (running.length === 0) return null
  return (
    <div className={styles.running}>
      <h2 className={styles.title}>Running</h2>
      <ul>
        {running.slice(0, 6).map((it) => (
          <li key={it.id} className={styles.run}>
            <To to={org.to.run(it.id)} className={styles.runName ?? ''}>
              <bdi>{it.install_name}</bdi> {workflowName(it.type)}
            </To>
            <Progress done={it.done} total={it.total} />
            <span className={styles.now} dir="auto">
              {it.now}
            </span>
            <span className="muted small">
              <Time at={it.started_at} />
            </span>
          </li>
        ))}
      </ul>
      {running.length > 6 && <To to={`${org.to.workflows}?status=in-progress`}>All {running.length} that run</To>}
    </div>
  )
}

export function Progress({ done, total }: { done: number; total: number }) {
  return (
    <span className={styles.progress}>
      <span className={styles.bar} aria-hidden="true">
        <span style={{ width: `${total > 0 ? (100 * done) / total : 0}%` }} />
      </span>
      <span className="small nowrap">
        {done}/{total}
        <span className="visually-hidden"> steps done</span>
      </span>
    </span>
  )
}
