import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { fleet } from '../../api/queries'
import type { FleetRow } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip, Mark } from '../../base/Chip'
import { Empty, Failure } from '../../base/Failure'
import { Skeleton } from '../../base/Skeleton'
import { type Column, Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { count, plural } from '../../lib/format'
import { failureInfo, More } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { useShortcuts } from '../../parts/shortcuts'
import { To, useGo, useParamsState } from '../../parts/To'
import { Dots } from './Dots'
import { FleetFilters, filterNames } from './FleetFilters'
import { Needs } from './Needs'
import { Spread } from './Spread'
import styles from './Fleet.module.css'

/** What needs me, and is all as it should be? */
export function Fleet() {
  const org = useOrg()
  const go = useGo()
  const [params, set] = useParamsState()
  const filter = Object.fromEntries(filterNames.map((name) => [name, params[name]]))
  const filtered = filterNames.some((name) => params[name])
  const query = useInfiniteQuery({ ...fleet(org.id, { ...filter, sort: params.sort }), placeholderData: keepPreviousData })
  const readOnly = useNeeds('operator')
  const first = query.data?.pages[0]
  const rows = query.data?.pages.flatMap((it) => it.rows) ?? []

  useShortcuts([
    { keys: '/', does: 'Filter by name', run: () => document.getElementById('fleet-q')?.focus() },
    { keys: 'n', does: 'New install', run: () => go(org.to.newInstall()) },
  ])

  return (
    <Page
      title="Fleet"
      command={filtered && params.labels ? `ferry fleet -l '${params.labels}'` : 'ferry fleet'}
      actions={
        <Button kind="primary" reason={readOnly} onClick={() => go(org.to.newInstall())}>
          New install
        </Button>
      }
    >
      <div className={styles.top}>
        <Needs />
        {first && first.total > 0 && <Spread facets={first.facets} />}
      </div>
      {first && (first.total > 0 || filtered) && (
        <div className={styles.filters}>
          <FleetFilters facets={first.facets} params={params} set={set} />
          <span className={styles.count} role="status">
            {filtered ? `${count(first.matched)} of ${plural(first.total, 'install')}` : plural(first.total, 'install')}
          </span>
        </div>
      )}
      {query.isError && <Failure error={failureInfo(query.error)} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton rows={10} />}
      {first && rows.length === 0 && !filtered && (
        <Empty command="ferry installs create acme --app shop" action={<To to={org.to.newInstall()}>Create an install here</To>}>
          No installs yet. An install is one app, running for one customer.
        </Empty>
      )}
      {first && rows.length === 0 && filtered && (
        <Empty action={<Button onClick={() => set(Object.fromEntries(filterNames.map((it) => [it, undefined])))}>Clear the filter</Button>}>No install matches this filter.</Empty>
      )}
      {rows.length > 0 && (
        <div className={query.isPlaceholderData ? styles.old : undefined}>
          <Table
            label="Installs"
            columns={columns(org.to.install, org.to.runner, org.to.run)}
            rows={rows}
            id={(row) => row.id}
            total={first?.matched}
            sort={params.sort ?? 'name'}
            onSort={(sort) => set({ sort })}
            onActivate={(row) => go(org.to.install(row.id))}
          />
        </div>
      )}
      <More query={query} label={`Show more of ${count(first?.matched ?? 0)}`} />
    </Page>
  )
}

function columns(install: (id: string) => string, runner: (id: string) => string, run: (id: string) => string): Column<FleetRow>[] {
  return [
    {
      key: 'name',
      head: 'Install',
      sort: 'name',
      plain: true,
      cell: (row) => (
        <span className={styles.name}>
          <To to={install(row.id)}>
            <bdi>{row.name}</bdi>
          </To>
          <span className="muted small">
            <bdi>{row.app_name}</bdi>
          </span>
        </span>
      ),
    },
    {
      key: 'status',
      head: 'Status',
      sort: 'status',
      fit: true,
      cell: (row) => (
        <span className="row">
          <Chip status={row.status} kind="component" />
          {row.health && !['healthy', 'not-applicable'].includes(row.health) && <Chip status={row.health} kind="health" />}
          {row.drifted > 0 && (
            <Mark role="warn" icon="unequal">
              {row.drifted} drifted
            </Mark>
          )}
        </span>
      ),
    },
    {
      key: 'runner',
      head: 'Runner',
      sort: 'runner',
      fit: true,
      cell: (row) => (
        <To to={runner(row.runner_id)} className={styles.plain ?? ''}>
          <Chip status={row.runner_status} kind="runner" bare />
        </To>
      ),
    },
    {
      key: 'version',
      head: 'Version',
      sort: 'version',
      fit: true,
      cell: (row) => <Version row={row} />,
    },
    { key: 'components', head: 'Components', cell: (row) => <Dots components={row.components} /> },
    {
      key: 'run',
      head: 'Last run',
      fit: true,
      cell: (row) =>
        row.workflow_id ? (
          <To to={run(row.workflow_id)} className={styles.plain ?? ''}>
            <Chip status={row.workflow_status} kind="workflow" bare />
          </To>
        ) : null,
    },
    {
      key: 'changed',
      head: 'Changed',
      sort: 'changed',
      fit: true,
      cell: (row) => (
        <span className={styles.changed}>
          <Time at={row.changed_at} /> {row.changed_by && <bdi className="muted">{row.changed_by.split('@')[0]}</bdi>}
        </span>
      ),
    },
  ]
}

function Version({ row }: { row: FleetRow }) {
  if (row.version === undefined) return <span className="muted">none</span>
  const behind = row.latest_version !== undefined && row.version < row.latest_version
  return (
    <span className="nowrap mono">
      {row.version}
      {behind && <span className="muted"> &lt; {row.latest_version}</span>}
      {row.kept && (
        <>
          {' '}
          <Mark role="neutral" icon="square" title="A rollback keeps it at this version">
            kept
          </Mark>
        </>
      )}
    </span>
  )
}
