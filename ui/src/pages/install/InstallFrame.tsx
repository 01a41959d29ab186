import { Outlet, useParams } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useQuery } from '@tanstack/react-query'
import { audit } from '../../api/queries'
import { useInfiniteQuery } from '@tanstack/react-query'
import type { InstallOverview } from '../../api/types'
import { Chip, Mark } from '../../base/Chip'
import { Empty, Note } from '../../base/Failure'
import { Id } from '../../base/Id'
import { Time } from '../../base/Time'
import { pairs } from '../../lib/format'
import { overview } from '../../api/queries'
import { Loaded } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { useTitle } from '../../parts/Page'
import { remember } from '../../parts/prefs'
import { Tabs } from '../../parts/Tabs'
import { To } from '../../parts/To'
import { InstallActions } from './InstallActions'
import { InstallContext } from './use-install'
import styles from './Install.module.css'

/** What is here, is it right? The header of every page of an install. */
export function InstallFrame() {
  const org = useOrg()
  const { install = '' } = useParams({ strict: false })
  const query = useQuery(overview(org.id, install))
  return (
    <Loaded query={query} missing={<Gone id={install} />}>
      {(data) => (
        <InstallContext value={data}>
          <Framed data={data} />
        </InstallContext>
      )}
    </Loaded>
  )
}

function Framed({ data }: { data: InstallOverview }) {
  const org = useOrg()
  const it = data.install
  const { can } = data
  useTitle(it.name)
  useEffect(() => remember(org.id, { to: org.to.install(it.id), name: it.name, kind: 'install' }), [org, it.id, it.name])
  const to = (part = '') => org.to.install(it.id, part)
  return (
    <div className={styles.frame}>
      <header className={styles.header}>
        <div className={styles.head}>
          <div className="row">
            <h1>
              <bdi>{it.name}</bdi>
            </h1>
            <Chip status={it.status} kind="component" />
            {it.health && it.health !== 'not-applicable' && <Chip status={it.health} kind="health" />}
            <To to={org.to.app(it.app_id)}>
              <bdi>{it.app_name}</bdi>
            </To>
            <span className="muted">
              {it.version === undefined ? 'not deployed' : `v${it.version}`}
              {it.latest_version !== undefined && it.version !== undefined && it.latest_version > it.version && ` of ${it.latest_version}`}
            </span>
            {data.kept_at_version !== undefined && (
              <Mark role="neutral" icon="square">
                kept at v{data.kept_at_version} by a rollback
              </Mark>
            )}
            <span className="muted">
              {it.platform} <bdi>{it.region}</bdi>
            </span>
            {pairs(it.labels)
              .slice(0, 6)
              .map(([key, value]) => (
                <span key={key} className={styles.label}>
                  <bdi>
                    {key}={value}
                  </bdi>
                </span>
              ))}
            <Id id={it.id} what="install id" />
          </div>
          <InstallActions data={data} />
        </div>
        <div className={styles.facts}>
          <To to={org.to.runner(it.runner_id)} className={styles.runner ?? ''}>
            <Chip status={data.runner.draining && it.runner_status === 'active' ? 'draining' : it.runner_status} kind="runner" bare />
          </To>
          {(it.runner_seen_at || data.runner.report?.disabled_since || (data.jobs_queued ?? 0) > 0) && (
          <span className="muted">
            {it.runner_seen_at && (
              <>
                runner seen <Time at={it.runner_seen_at} />
              </>
            )}
            {data.runner.report?.disabled_since && (
              <>
                , switched off by the customer <Time at={data.runner.report.disabled_since} />
              </>
            )}
            {(data.jobs_queued ?? 0) > 0 && `, ${data.jobs_queued} jobs wait`}
          </span>
          )}
          <span className="muted">approvals: {data.approval_option === 'approve-all' ? 'none asked' : 'ask'}</span>
          {data.managed_by && (
            <span className="muted">
              managed by <bdi>{data.managed_by}</bdi>
            </span>
          )}
        </div>
        {data.warnings?.map((text) => (
          <Note key={text} role="warn">
            <span dir="auto">{text}</span>
          </Note>
        ))}
        {(data.undeployed_inputs?.length ?? 0) > 0 && (
          <Note role="warn">
            Inputs are set but not deployed: <bdi>{data.undeployed_inputs?.join(', ')}</bdi>. <To to={to('inputs')}>Show them</To>
          </Note>
        )}
        <Tabs
          label="Pages of the install"
          tabs={[
            { to: to(), name: 'Overview', exact: true },
            { to: to('components'), name: 'Components' },
            { to: to('history'), name: 'History' },
            { to: to('drift'), name: 'Drift', count: it.drifted },
            { to: to('health'), name: 'Health' },
            ...(can.action?.ok === false && can.action.reason?.includes('no actions') ? [] : [{ to: to('actions'), name: 'Actions' }]),
            { to: to('runbooks'), name: 'Runbooks' },
            { to: to('inputs'), name: 'Inputs' },
            { to: to('state'), name: 'State' },
            { to: to('stack'), name: 'Stack' },
            { to: to('policies'), name: 'Policies' },
            { to: to('audit'), name: 'Audit' },
          ]}
        />
      </header>
      <Outlet />
    </div>
  )
}

/** An install that was forgotten, or that never was. */
function Gone({ id }: { id: string }) {
  const org = useOrg()
  const query = useInfiniteQuery(audit(org.id, { install: id, limit: 5 }))
  const entry = query.data?.pages[0]?.entries.find((it) => it.kind === 'install.forgotten')
  return (
    <Empty action={<To to={entry ? org.to.audit + `?install=${encodeURIComponent(id)}` : org.to.fleet}>{entry ? 'Show what happened' : 'Go to the fleet'}</To>}>
      {entry ? (
        <>
          <bdi>{entry.subject_name || id}</bdi> was forgotten by <bdi>{entry.who}</bdi>, <Time at={entry.time} />. Its runs, jobs and events are still in the audit log.
        </>
      ) : (
        <>
          There is no install <bdi>{id}</bdi> in this org.
        </>
      )}
    </Empty>
  )
}
