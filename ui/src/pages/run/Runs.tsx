import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { workflows } from '../../api/queries'
import { Button } from '../../base/Button'
import { Empty } from '../../base/Failure'
import { statusLook } from '../../lib/status'
import { LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { useParamsState } from '../../parts/To'
import { workflowName, workflowTypes } from '../../parts/words'
import { Filters, Pick, Search } from '../../parts/filters/Filters'
import { RunTable } from './RunTable'

const statuses = ['pending', 'in-progress', 'approval-awaiting', 'success', 'warning', 'error', 'cancelled']

/** What ran? */
export function Runs() {
  const org = useOrg()
  const [params, set] = useParamsState()
  const filter = { type: params.type, status: params.status, install: params.install, actor: params.actor }
  const filtered = Object.values(filter).some(Boolean)
  const query = useInfiniteQuery({ ...workflows(org.id, filter), placeholderData: keepPreviousData })
  return (
    <Page title="Runs" command="ferry workflows list">
      <Filters>
        <Pick label="Status" value={params.status} options={statuses.map((it) => ({ value: it, name: statusLook(it, 'workflow').word }))} onChange={(status) => set({ status })} />
        <Pick label="Kind" value={params.type} options={workflowTypes.map((it) => ({ value: it, name: workflowName(it) }))} onChange={(type) => set({ type })} />
        <Search label="Install" value={params.install} onChange={(install) => set({ install })} />
        <Search label="Who" value={params.actor} onChange={(actor) => set({ actor })} />
      </Filters>
      <LoadedList
        query={query}
        empty={
          filtered ? (
            <Empty action={<Button onClick={() => set({ type: undefined, status: undefined, install: undefined, actor: undefined })}>Clear the filter</Button>}>No run matches this filter.</Empty>
          ) : (
            <Empty command="ferry installs deploy acme">Nothing ran yet. Every change to an install is a run.</Empty>
          )
        }
      >
        {(rows) => <RunTable rows={rows} install />}
      </LoadedList>
    </Page>
  )
}
