import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { jobs } from '../../api/queries'
import type { Job } from '../../api/types'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time, Took } from '../../base/Time'
import { words } from '../../lib/format'
import { statusLook } from '../../lib/status'
import { Filters, Pick } from '../../parts/filters/Filters'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { To, useGo, useParamsState } from '../../parts/To'

const statuses = ['queued', 'available', 'in-progress', 'unknown', 'finished', 'failed', 'timed-out', 'cancelled', 'not-attempted']

/** Jobs of all runners. */
export function Jobs() {
  const org = useOrg()
  const [params, set] = useParamsState()
  const query = useInfiniteQuery({ ...jobs(org.id, { status: params.status, runner: params.runner, install: params.install }), placeholderData: keepPreviousData })
  return (
    <Page title="Jobs" command="ferry jobs list">
      <Filters>
        <Pick label="Status" value={params.status} options={statuses.map((it) => ({ value: it, name: statusLook(it, 'job').word }))} onChange={(status) => set({ status })} />
      </Filters>
      <LoadedList query={query} empty={<Empty>No jobs{params.status ? ' with this status' : ' yet'}.</Empty>}>
        {(rows) => <JobTable rows={rows} />}
      </LoadedList>
    </Page>
  )
}

export function JobTable({ rows }: { rows: Job[] }) {
  const org = useOrg()
  const go = useGo()
  return (
    <Table
      label="Jobs"
      rows={rows}
      id={(it) => it.id}
      onActivate={(it) => go(org.to.job(it.id))}
      columns={[
        { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="job" /> },
        {
          key: 'name',
          head: 'Job',
          plain: true,
          cell: (it) => (
            <To to={org.to.job(it.id)}>
              <bdi>{it.name || words(it.type)}</bdi>
            </To>
          ),
        },
        { key: 'type', head: 'Kind', cell: (it) => <span className="muted">{words(it.type)}</span> },
        { key: 'waits', head: 'Waits for', cell: (it) => it.waiting_reason && <span className="muted">{it.waiting_reason}</span> },
        { key: 'at', head: 'Created', fit: true, cell: (it) => <Time at={it.created_at} /> },
        { key: 'took', head: 'Took', fit: true, num: true, cell: (it) => it.started_at && <Took from={it.started_at} to={it.finished_at ?? (['in-progress'].includes(it.status) ? undefined : it.updated_at)} /> },
      ]}
    />
  )
}
