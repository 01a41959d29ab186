import { useInfiniteQuery } from '@tanstack/react-query'
import { versions } from '../../api/queries'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { To, useGo } from '../../parts/To'
import { useApp } from './AppFrame'

export function Versions() {
  const org = useOrg()
  const go = useGo()
  const app = useApp()
  const query = useInfiniteQuery(versions(org.id, app.id))
  return (
    <LoadedList query={query} empty={<Empty command={`ferry apps sync . --app ${app.name}`}>No version yet.</Empty>}>
      {(rows) => (
        <Table
          label="Versions"
          rows={rows}
          id={(it) => it.id}
          onActivate={(it) => go(org.to.version(app.id, it.id))}
          columns={[
            { key: 'version', head: 'Version', fit: true, cell: (it) => <To to={org.to.version(app.id, it.id)}><b>{it.version ?? 'draft'}</b></To> },
            { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="app" title={it.status_description} /> },
            { key: 'parts', head: 'Components', fit: true, num: true, cell: (it) => it.component_ids?.length ?? 0 },
            { key: 'diff', head: 'Compare', cell: (it) => { const before = rows[rows.indexOf(it) + 1]; return before ? <To to={`${org.to.version(app.id, it.id)}?against=${encodeURIComponent(before.id)}`}>with {before.version ?? 'the draft'}</To> : null } },
            { key: 'cli', head: 'CLI', cell: (it) => <span className="muted">{it.cli_version}</span> },
            { key: 'at', head: 'Synced', fit: true, cell: (it) => <Time at={it.created_at} /> },
          ]}
        />
      )}
    </LoadedList>
  )
}
