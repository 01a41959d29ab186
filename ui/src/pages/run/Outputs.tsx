import { useQuery } from '@tanstack/react-query'
import { job as jobQuery } from '../../api/queries'
import { Chip } from '../../base/Chip'
import { Time } from '../../base/Time'
import { Loaded } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { Facts } from '../../parts/Page'
import { Values } from '../../parts/Values'
import { words } from '../../lib/format'

/** What the job of a step left: its outputs and its executions. */
export function Outputs({ job }: { job: string }) {
  const org = useOrg()
  const query = useQuery(jobQuery(org.id, job))
  return (
    <Loaded query={query}>
      {(it) => (
        <div className="stack">
          <Values values={it.outputs as Record<string, unknown> | undefined} empty="This step has no outputs." />
          <Facts
            facts={[
              ['Job', words(it.type)],
              ['Status', <Chip key="s" status={it.status} kind="job" />],
              ['Target', it.target],
              ['Executions', `${it.execution_count} of at most ${it.max_executions}`],
              ['Created', <Time key="t" at={it.created_at} />],
            ]}
          />
        </div>
      )}
    </Loaded>
  )
}
