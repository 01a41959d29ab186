import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { history, sandboxRuns } from '../../api/queries'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { words } from '../../lib/format'
import { Filters, Pick } from '../../parts/filters/Filters'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { To, useParamsState } from '../../parts/To'
import { workflowName, workflowTypes } from '../../parts/words'
import { RunTable } from '../run/RunTable'
import { useInstall } from './use-install'

export function History() {
  const org = useOrg()
  const { install } = useInstall()
  const [params, set] = useParamsState()
  const query = useInfiniteQuery({ ...history(org.id, install.id, { type: params.type }), placeholderData: keepPreviousData })
  const sandbox = useInfiniteQuery(sandboxRuns(org.id, install.id))
  return (
    <>
      <Filters>
        <Pick label="Kind" value={params.type} options={workflowTypes.map((it) => ({ value: it, name: workflowName(it) }))} onChange={(type) => set({ type })} />
      </Filters>
      <LoadedList query={query} empty={<Empty command={`ferry installs deploy ${install.name}`}>{params.type ? 'No run of this kind.' : 'Nothing was done to this install yet.'}</Empty>}>
        {(rows) => <RunTable rows={rows} />}
      </LoadedList>
      <Section title="Sandbox">
        <LoadedList query={sandbox} empty={<p className="muted">The sandbox was never planned.</p>}>
          {(rows) => (
            <Table
              label="Sandbox runs"
              rows={rows}
              id={(it) => it.id}
              columns={[
                { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="step" /> },
                { key: 'run', head: 'Run', plain: true, cell: (it) => <To to={org.to.run(it.workflow_id)}>{words(it.run_type)}</To> },
                { key: 'why', head: 'Why', cell: (it) => <span className="muted" dir="auto">{it.status_description}</span> },
                { key: 'at', head: 'Began', fit: true, cell: (it) => <Time at={it.created_at} /> },
              ]}
            />
          )}
        </LoadedList>
      </Section>
      <CommandLine text={`ferry installs history ${install.name}`} />
    </>
  )
}
