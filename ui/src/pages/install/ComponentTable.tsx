import type { ComponentRow, InstallOverview } from '../../api/types'
import { Chip, Mark } from '../../base/Chip'
import { type Column, Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { words } from '../../lib/format'
import { useOrg } from '../../parts/org'
import { To, useGo } from '../../parts/To'

/** Components of an install: how each is, which version, and what waits. */
export function ComponentTable({ data, sandbox = false, menu }: { data: InstallOverview; sandbox?: boolean; menu?: (row: ComponentRow) => React.ReactNode }) {
  const org = useOrg()
  const go = useGo()
  const id = data.install.id
  const rows = sandbox && data.sandbox ? [{ ...data.sandbox, name: data.sandbox.name || 'sandbox' }, ...data.components] : data.components
  const place = (row: ComponentRow) => (data.sandbox && row.name === (data.sandbox.name || 'sandbox') && !row.id ? (row.workflow_id ? org.to.run(row.workflow_id) : org.to.install(id, 'history')) : org.to.component(id, row.name))
  const columns: Column<ComponentRow>[] = [
    {
      key: 'name',
      head: 'Component',
      plain: true,
      cell: (it) => (
        <span className="row">
          <To to={place(it)}>
            <bdi>{it.name}</bdi>
          </To>
          {it.type && <span className="muted small">{words(it.type)}</span>}
          {it.retired && <Mark role="warn" icon="bang">no longer in the app</Mark>}
          {it.disabled && <Mark role="neutral" icon="dotted">switched off</Mark>}
        </span>
      ),
    },
    {
      key: 'status',
      head: 'Status',
      cell: (it) => (
        <span className="row">
          <Chip status={it.status} kind="component" />
          {it.health && it.health !== 'not-applicable' && it.health !== 'healthy' && <Chip status={it.health} kind="health" title={it.health_reason} />}
          {it.drift === 'drifted' && <Chip status="drifted" />}
          {it.waiting_workflow_id && (
            <To to={org.to.run(it.waiting_workflow_id, it.waiting_step_id)}>
              <Chip status="approval-awaiting" />
            </To>
          )}
        </span>
      ),
    },
    {
      key: 'version',
      head: 'Version',
      fit: true,
      cell: (it) => (
        <span className="mono nowrap">
          {it.version ?? <span className="muted">none</span>}
          {it.next_version !== undefined && it.next_version !== it.version && <span className="muted"> → {it.next_version}</span>}
        </span>
      ),
    },
    { key: 'needs', head: 'Needs', cell: (it) => (it.depends_on?.length ? <bdi className="muted">{it.depends_on.join(', ')}</bdi> : null) },
    { key: 'at', head: 'Deployed', fit: true, cell: (it) => (it.deployed_at ? it.workflow_id ? <To to={org.to.run(it.workflow_id)}><Time at={it.deployed_at} /></To> : <Time at={it.deployed_at} /> : <span className="muted">{it.status === 'pending' ? 'never' : ''}</span>) },
    ...(menu ? [{ key: 'menu', head: <span className="visually-hidden">Actions</span>, fit: true, cell: menu }] : []),
  ]
  return <Table label="Components" columns={columns} rows={rows} id={(it) => `${it.id ?? ''}${it.name}`} onActivate={(it) => go(place(it))} rowProps={(it) => ({ 'data-off': it.disabled ?? false })} />
}
