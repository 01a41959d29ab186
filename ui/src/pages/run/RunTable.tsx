import type { Workflow } from '../../api/types'
import { Chip, Mark } from '../../base/Chip'
import { type Column, Table } from '../../base/Table'
import { Time, Took } from '../../base/Time'
import { useOrg } from '../../parts/org'
import { To, useGo } from '../../parts/To'
import { workflowName } from '../../parts/words'

/** Runs, the newest first. */
export function RunTable({ rows, install = false }: { rows: Workflow[]; install?: boolean }) {
  const org = useOrg()
  const go = useGo()
  const columns: Column<Workflow>[] = [
    { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status.status} kind="workflow" /> },
    {
      key: 'name',
      head: 'Run',
      plain: true,
      cell: (it) => (
        <span className="row">
          <To to={org.to.run(it.id)}>
            <bdi>{it.name || workflowName(it.type)}</bdi>
          </To>
          {it.plan_only && <Mark role="neutral">plan only</Mark>}
          {it.status.status_human_description && (
            <span className="muted small" dir="auto">
              {it.status.status_human_description}
            </span>
          )}
        </span>
      ),
    },
    ...(install
      ? [
          {
            key: 'install',
            head: 'Install',
            cell: (it: Workflow) => (
              <To to={org.to.install(it.owner_id)}>
                <bdi>{it.owner_name || it.owner_id}</bdi>
              </To>
            ),
          },
        ]
      : []),
    { key: 'kind', head: 'Kind', fit: true, cell: (it) => <span className="muted">{workflowName(it.type)}</span> },
    { key: 'version', head: 'Version', fit: true, num: true, cell: (it) => it.config_version ?? '' },
    { key: 'created', head: 'Began', fit: true, cell: (it) => <Time at={it.created_at} /> },
    { key: 'took', head: 'Took', fit: true, num: true, cell: (it) => <Took from={it.started_at ?? undefined} to={it.finished_at ?? (it.finished ? it.updated_at : undefined)} /> },
  ]
  return <Table label="Runs" columns={columns} rows={rows} id={(it) => it.id} onActivate={(it) => go(org.to.run(it.id))} />
}
