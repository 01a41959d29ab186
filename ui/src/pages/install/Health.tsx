import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { health, healthHistory } from '../../api/queries'
import type { ComponentHealth } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { CommandLine } from '../../parts/Page'
import { HealthBars, uptime } from './HealthBars'
import { useInstall } from './use-install'
import styles from './Install.module.css'

/** How each component is, as the runner observes it, over 90 days. */
export function Health() {
  const org = useOrg()
  const { install } = useInstall()
  const query = useQuery(health(org.id, install.id, 90))
  return (
    <>
      <Loaded query={query}>
        {(data) => (
          <>
            {data.components.length === 0 && <Empty>Nothing is observed yet. The runner observes charts, manifests and jobs after their first deploy.</Empty>}
            {data.components.map((it) => (
              <Row key={it.component} it={it} />
            ))}
          </>
        )}
      </Loaded>
      <CommandLine text={`ferry installs health ${install.name}`} />
    </>
  )
}

function Row({ it }: { it: ComponentHealth }) {
  const [open, setOpen] = useState(false)
  return (
    <section className={styles.healthRow} aria-label={it.component}>
      <div>
        <h2>
          <bdi>{it.component}</bdi>
        </h2>
        <span className="row">
          <Chip status={it.verdict} kind="health" />
          <span className="muted small">
            since <Time at={it.since} />
          </span>
        </span>
      </div>
      <HealthBars days={it.days} />
      <span className="num">{uptime(it.uptime)}</span>
      <div className={styles.wide}>
        {it.reason && (
          <p dir="auto">
            {it.reason}
            {it.downstream_of && (
              <>
                {' '}
                because of <bdi>{it.downstream_of}</bdi>
              </>
            )}
          </p>
        )}
        <ul>
          {it.objects.map((object) => (
            <li key={`${object.kind} ${object.namespace} ${object.name}`} className="row">
              <Chip status={object.verdict} kind="health" bare /> <bdi className="mono">{[object.kind, object.namespace, object.name].filter(Boolean).join('/')}</bdi> <span className="muted" dir="auto">{object.reason}</span>
            </li>
          ))}
          {it.checks.map((check) => (
            <li key={check.name} className="row">
              <Chip status={check.status} kind="health" bare /> check <bdi>{check.name}</bdi> <span className="muted" dir="auto">{check.message}</span> {check.stale && <span className="muted">(stale)</span>} <Time at={check.reported_at} />
            </li>
          ))}
        </ul>
        <p className="row">
          {it.observed_at && (
            <span className="muted small">
              observed <Time at={it.observed_at} />, {it.judged} objects
            </span>
          )}
          <Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide changes' : 'Changes'}
          </Button>
        </p>
        {open && <Changes component={it.component} />}
      </div>
    </section>
  )
}

function Changes({ component }: { component: string }) {
  const org = useOrg()
  const { install } = useInstall()
  const query = useInfiniteQuery(healthHistory(org.id, install.id, component))
  return (
    <LoadedList query={query} empty={<p className="muted">It did not change.</p>}>
      {(rows) => (
        <Table
          label={`Changes of ${component}`}
          rows={rows}
          id={(it) => `${it.at} ${it.to}`}
          columns={[
            { key: 'at', head: 'When', fit: true, cell: (it) => <Time at={it.at} /> },
            { key: 'to', head: 'Became', fit: true, cell: (it) => <Chip status={it.to} kind="health" /> },
            { key: 'why', head: 'Why', cell: (it) => <span dir="auto">{it.reason}</span> },
          ]}
        />
      )}
    </LoadedList>
  )
}
