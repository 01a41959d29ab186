import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { state, stateDiff, stateVersions, workspaces } from '../../api/queries'
import { path, post } from '../../api/client'
import { Button } from '../../base/Button'
import { Mark } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { useState } from 'react'
import { Confirm } from '../../parts/act'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { cannot, useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { To, useParamsState } from '../../parts/To'
import { StateChanges } from './StateChanges'
import { useInstall } from './use-install'
import { WorkspaceStates } from './WorkspaceStates'
import styles from './Install.module.css'

/** What templates see, version by version; and the Terraform states below. */
export function State() {
  const org = useOrg()
  const { install } = useInstall()
  const [params, set] = useParamsState()
  const list = useInfiniteQuery(stateVersions(org.id, install.id))
  const whole = useQuery({ ...state(org.id, install.id, params.version ?? ''), enabled: params.version !== undefined })
  const diff = useQuery({ ...stateDiff(org.id, install.id, params.from ?? '', params.to ?? ''), enabled: Boolean(params.from && params.to) })
  return (
    <>
      <Section title="Versions">
        <LoadedList query={list} empty={<Empty>No state yet: it comes with the first deploy.</Empty>}>
          {(rows) => (
            <Table
              label="Versions of the state"
              rows={rows}
              id={(it) => String(it.version)}
              active={params.version ?? params.to}
              columns={[
                { key: 'version', head: 'Version', fit: true, num: true, cell: (it) => it.version },
                { key: 'parts', head: 'Changed', plain: true, cell: (it) => <bdi>{it.parts.join(', ')}</bdi> },
                { key: 'run', head: 'Run', fit: true, cell: (it) => it.workflow_id && <To to={org.to.run(it.workflow_id)}>run</To> },
                { key: 'at', head: 'Saved', fit: true, cell: (it) => <Time at={it.created_at} /> },
                {
                  key: 'show',
                  head: <span className="visually-hidden">Actions</span>,
                  fit: true,
                  cell: (it) => (
                    <span className="row">
                      <Button small onClick={() => set({ version: String(it.version), from: undefined, to: undefined })}>
                        Show
                      </Button>
                      {it.version > 1 && (
                        <Button small onClick={() => set({ from: String(it.version - 1), to: String(it.version), version: undefined })}>
                          Diff
                        </Button>
                      )}
                    </span>
                  ),
                },
              ]}
            />
          )}
        </LoadedList>
      </Section>
      {params.from && params.to && <Loaded query={diff}>{(found) => <StateChanges diff={found} title={`Version ${found.to} since ${found.from}`} />}</Loaded>}
      {params.version && (
        <Section title={`Version ${params.version}`}>
          <Loaded query={whole}>{(found) => <pre className={styles.pre} tabIndex={0}>{JSON.stringify(found.state, null, 2)}</pre>}</Loaded>
        </Section>
      )}
      <Workspaces />
      <CommandLine text={`ferry installs state ${install.name}`} />
    </>
  )
}

function Workspaces() {
  const org = useOrg()
  const { install, can } = useInstall()
  const query = useQuery(workspaces(org.id, install.id))
  const [unlock, setUnlock] = useState('')
  const [open, setOpen] = useState('')
  return (
    <Section title="Terraform states">
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="muted">No part of this install keeps a Terraform state.</p>
          ) : (
            <>
              <Table
                label="Workspaces"
                rows={rows}
                id={(it) => it.id}
                columns={[
                  { key: 'part', head: 'Part', plain: true, cell: (it) => <bdi>{it.sandbox ? 'sandbox' : it.component || it.target}</bdi> },
                  { key: 'serial', head: 'Serial', fit: true, num: true, cell: (it) => it.serial ?? '' },
                  { key: 'resources', head: 'Resources', fit: true, num: true, cell: (it) => it.resource_count ?? '' },
                  { key: 'lock', head: 'Lock', cell: (it) => it.lock && <span className="row"><Mark role="info" icon="half">locked</Mark><span className="muted small"><bdi>{it.lock.who}</bdi> {it.lock.operation} <Time at={it.lock.created} /></span></span> },
                  { key: 'open', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <span className="row">{it.lock && <Button small reason={cannot(can, 'restore')} onClick={() => setUnlock(it.id)}>Unlock</Button>}<Button small aria-expanded={open === it.id} onClick={() => setOpen(open === it.id ? '' : it.id)}>Versions</Button></span> },
                ]}
              />
              {open && <WorkspaceStates key={open} workspace={open} can={can} installName={install.name} />}
            </>
          )
        }
      </Loaded>
      <Confirm open={unlock !== ''} onClose={() => setUnlock('')} title="Remove the lock?" label="Unlock" danger word={install.name} reason={cannot(can, 'restore')} perform={(key) => post(path`/v1/terraform-workspaces/${unlock}/unlock`, { org: org.id, idempotency: key })}>
        <p>Only when whoever holds it is gone for certain. Two writers at once break a state.</p>
      </Confirm>
    </Section>
  )
}
