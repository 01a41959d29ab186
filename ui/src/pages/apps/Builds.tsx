import { useInfiniteQuery } from '@tanstack/react-query'
import { builds } from '../../api/queries'
import type { Build } from '../../api/types'
import { Chip, Mark } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { shortDigest } from '../../lib/format'
import { duration } from '../../lib/time'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { To, useGo } from '../../parts/To'
import { useApp } from './AppFrame'

export function Builds() {
  const org = useOrg()
  const app = useApp()
  const query = useInfiniteQuery(builds(org.id, { app_id: app.id }))
  return (
    <LoadedList query={query} empty={<Empty command={`ferry builds create --app ${app.name}`}>Nothing was built yet. A sync builds what is new.</Empty>}>
      {(rows) => <BuildTable rows={rows} />}
    </LoadedList>
  )
}

function BuildTable({ rows }: { rows: Build[] }) {
  const org = useOrg()
  const go = useGo()
  return (
    <Table
      label="Builds"
      rows={rows}
      id={(it) => it.id}
      onActivate={(it) => go(org.to.build(it.id))}
      columns={[
        { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="build" title={it.status_description} /> },
        { key: 'name', head: 'Component', plain: true, cell: (it) => <span className="row"><To to={org.to.build(it.id)}><bdi>{it.component_name}</bdi></To>{it.no_op && <Mark role="neutral" icon="dash">same as before</Mark>}</span> },
        { key: 'commit', head: 'Commit', cell: (it) => <bdi className="mono">{it.vcs_connection_commit?.sha?.slice(0, 8) ?? it.git_ref ?? ''}</bdi> },
        { key: 'artifact', head: 'Artifact', cell: (it) => it.artifact && <code className="muted">{shortDigest(it.artifact.digest)}</code> },
        { key: 'took', head: 'Took', fit: true, num: true, cell: (it) => (it.duration ? duration(it.duration / 1e6) : '') },
        { key: 'at', head: 'Began', fit: true, cell: (it) => <Time at={it.created_at} /> },
      ]}
    />
  )
}
