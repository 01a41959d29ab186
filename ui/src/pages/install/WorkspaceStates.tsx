import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { states, terraformDiff, terraformState } from '../../api/queries'
import type { Cans, TerraformState } from '../../api/types'
import { Button } from '../../base/Button'
import { Mark } from '../../base/Chip'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { bytes } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { cannot, useOrg } from '../../parts/org'
import { useGo } from '../../parts/To'
import { StateChanges } from './StateChanges'

/** Versions of a Terraform state: what is in each, how two differ, and the way back. */
export function WorkspaceStates({ workspace, can, installName }: { workspace: string; can: Cans; installName: string }) {
  const org = useOrg()
  const go = useGo()
  const query = useInfiniteQuery(states(org.id, workspace))
  const [shown, setShown] = useState<TerraformState>()
  const [restore, setRestore] = useState<TerraformState>()
  return (
    <LoadedList query={query} empty={<p className="muted">No state was saved yet.</p>}>
      {(rows) => (
        <>
          <Table
            label="State versions"
            rows={rows}
            id={(it) => it.id}
            active={shown?.id}
            columns={[
              { key: 'serial', head: 'Serial', fit: true, num: true, cell: (it) => it.serial },
              { key: 'marks', head: 'State', plain: true, cell: (it) => <span className="row">{it.current && <Mark role="ok" icon="dot">current</Mark>}{it.quarantined && <Mark role="odd" icon="question">quarantined</Mark>}<span className="muted small" dir="auto">{it.note}</span></span> },
              { key: 'resources', head: 'Resources', fit: true, num: true, cell: (it) => it.resource_count },
              { key: 'size', head: 'Size', fit: true, num: true, cell: (it) => bytes(it.bytes) },
              { key: 'at', head: 'Saved', fit: true, cell: (it) => <Time at={it.created_at} /> },
              { key: 'open', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <span className="row"><Button small onClick={() => setShown(shown?.id === it.id ? undefined : it)}>{shown?.id === it.id ? 'Hide' : 'Show'}</Button>{!it.current && <Button small reason={cannot(can, 'restore')} onClick={() => setRestore(it)}>Restore</Button>}</span> },
            ]}
          />
          {shown && <Shown key={shown.id} workspace={workspace} state={shown} before={rows[rows.findIndex((it) => it.id === shown.id) + 1]} />}
          {restore && (
            <Confirm
              open
              onClose={() => setRestore(undefined)}
              title={`Restore serial ${restore.serial}?`}
              label="Restore"
              danger
              word={installName}
              reason={cannot(can, 'restore')}
              perform={(key) => post<{ id: string }>(path`/v1/terraform-workspaces/${workspace}/states/${restore.id}/restore`, { org: org.id, idempotency: key })}
              then={(job) => go(org.to.job((job as { id: string }).id))}
            >
              <p>The older state becomes the current one, as a new version. Resources that were made since are no longer known to Terraform. Plan the component next.</p>
            </Confirm>
          )}
        </>
      )}
    </LoadedList>
  )
}

function Shown({ workspace, state, before }: { workspace: string; state: TerraformState; before: TerraformState | undefined }) {
  const org = useOrg()
  const query = useQuery(terraformState(org.id, workspace, state.id))
  const diff = useQuery({ ...terraformDiff(org.id, workspace, state.id, before?.id ?? ''), enabled: before !== undefined })
  return (
    <div className="stack">
      {before && <Loaded query={diff}>{(found) => <StateChanges diff={found} title={`Since serial ${before.serial}`} />}</Loaded>}
      <Loaded query={query}>
        {(it) => (
          <Table
            label="Resources"
            rows={it.resources ?? []}
            id={(resource) => resource.address}
            columns={[
              { key: 'address', head: 'Resource', plain: true, cell: (resource) => <bdi className="mono">{resource.address}</bdi> },
              { key: 'provider', head: 'Provider', cell: (resource) => <bdi className="muted">{resource.provider}</bdi> },
              { key: 'status', head: 'Status', fit: true, cell: (resource) => (resource.status === 'ok' || resource.status === '' ? '' : resource.status) },
            ]}
          />
        )}
      </Loaded>
    </div>
  )
}
