import { useInfiniteQuery } from '@tanstack/react-query'
import { policies } from '../../api/queries'
import { Mark } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { plural } from '../../lib/format'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { CommandLine } from '../../parts/Page'
import { To } from '../../parts/To'
import { useInstall } from './use-install'

/** What the app's policies said about plans of this install. */
export function Policies() {
  const org = useOrg()
  const { install } = useInstall()
  const query = useInfiniteQuery(policies(org.id, install.id))
  return (
    <>
      <LoadedList query={query} empty={<Empty>No policy has checked a plan of this install.</Empty>}>
        {(rows) => (
          <Table
            label="Policy reports"
            rows={rows}
            id={(it) => it.id}
            columns={[
              { key: 'verdict', head: 'Verdict', fit: true, cell: (it) => (it.deny_count > 0 ? <Mark role="bad" icon="denied">{it.deny_count} denied</Mark> : it.warn_count > 0 ? <Mark role="warn" icon="bang">{plural(it.warn_count, 'warning')}</Mark> : <Mark role="ok" icon="check">passed</Mark>) },
              { key: 'step', head: 'Plan', plain: true, cell: (it) => <To to={org.to.run(it.workflow_id)}><bdi>{it.component_name || it.step}</bdi></To> },
              { key: 'what', head: 'What they said', cell: (it) => <ul>{it.violations?.map((found) => <li key={`${found.policy_name} ${found.message}`}><bdi>{found.message}</bdi> <span className="muted small">{found.policy_name} {found.severity} {found.input_identity}</span></li>)}</ul> },
              { key: 'count', head: 'Policies', fit: true, num: true, cell: (it) => it.policy_count },
              { key: 'at', head: 'Checked', fit: true, cell: (it) => <Time at={it.evaluated_at} /> },
            ]}
          />
        )}
      </LoadedList>
      <CommandLine text={`ferry installs policies ${install.name}`} />
    </>
  )
}
