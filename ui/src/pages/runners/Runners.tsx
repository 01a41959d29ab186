import { useInfiniteQuery } from '@tanstack/react-query'
import { runners } from '../../api/queries'
import type { Runner } from '../../api/types'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { To, useGo } from '../../parts/To'

export const runnerStatus = (it: Runner): string => (it.draining && it.status === 'active' ? 'draining' : it.status)

export const busyJobs = (it: Runner): number => Object.values(it.report?.busy ?? {}).reduce((sum, jobs) => sum + jobs.length, 0)

/** Can they work? */
export function Runners() {
  const org = useOrg()
  const go = useGo()
  const query = useInfiniteQuery(runners(org.id))
  return (
    <Page title="Runners" command="ferry runners list" actions={<To to={org.to.jobs}>All jobs</To>}>
      <LoadedList query={query} empty={<Empty>No runners yet. Each install has one.</Empty>}>
        {(rows) => (
          <Table
            label="Runners"
            rows={rows}
            id={(it) => it.id}
            onActivate={(it) => go(org.to.runner(it.id))}
            columns={[
              { key: 'name', head: 'Runner', plain: true, cell: (it) => <To to={org.to.runner(it.id)}><b><bdi>{it.name}</bdi></b></To> },
              { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={runnerStatus(it)} kind="runner" title={it.status_description} /> },
              { key: 'kind', head: 'Kind', fit: true, cell: (it) => <span className="muted">{it.kind}</span> },
              { key: 'install', head: 'Install', cell: (it) => it.install_id && <To to={org.to.install(it.install_id)}><bdi>{it.name}</bdi></To> },
              { key: 'jobs', head: 'Jobs', fit: true, num: true, cell: (it) => busyJobs(it) || '' },
              { key: 'host', head: 'Host', cell: (it) => <bdi className="muted">{it.report?.hostname}</bdi> },
              { key: 'version', head: 'Version', fit: true, cell: (it) => <span className="muted">{it.report?.version}</span> },
              { key: 'seen', head: 'Seen', fit: true, cell: (it) => <Time at={it.last_seen_at} /> },
            ]}
          />
        )}
      </LoadedList>
    </Page>
  )
}
