import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { runbookRuns, runbooks } from '../../api/queries'
import type { InstallRunbook } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Check, TextField } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { words } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { LoadedList } from '../../parts/Loaded'
import { cannot, useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { To, useGo } from '../../parts/To'
import { useInstall } from './use-install'

/** Sequences of steps that people start. */
export function Runbooks() {
  const org = useOrg()
  const { install, can } = useInstall()
  const query = useInfiniteQuery(runbooks(org.id, install.id))
  const runs = useInfiniteQuery(runbookRuns(org.id, install.id))
  const [run, setRun] = useState<InstallRunbook>()
  return (
    <>
      <LoadedList query={query} empty={<Empty>The app has no runbooks. A runbook is a sequence of deploys, actions and scripts that people start.</Empty>}>
        {(rows) => (
          <Table
            label="Runbooks"
            rows={rows}
            id={(it) => it.id}
            columns={[
              { key: 'name', head: 'Runbook', plain: true, cell: (it) => <span><b><bdi>{it.runbook?.name}</bdi></b> <span className="muted" dir="auto">{it.runbook?.description}</span></span> },
              { key: 'steps', head: 'Steps', cell: (it) => <span className="muted">{it.runbook?.configs?.[0]?.steps?.map((step) => step.name || words(step.type)).join(' → ')}</span> },
              { key: 'run', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <Button small reason={cannot(can, 'runbook')} onClick={() => setRun(it)}>Run</Button> },
            ]}
          />
        )}
      </LoadedList>
      <Section title="Runs">
        <LoadedList query={runs} empty={<p className="muted">No runbook ran here yet.</p>}>
          {(rows) => (
            <Table
              label="Runs of runbooks"
              rows={rows}
              id={(it) => it.id}
              columns={[
                { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="workflow" /> },
                { key: 'run', head: 'Run', plain: true, cell: (it) => <To to={org.to.run(it.install_workflow_id)}>open</To> },
                { key: 'why', head: 'Ended', cell: (it) => <span className="muted" dir="auto">{it.status_description}</span> },
                { key: 'at', head: 'Began', fit: true, cell: (it) => <Time at={it.created_at} /> },
              ]}
            />
          )}
        </LoadedList>
      </Section>
      {run && <Run runbook={run} onClose={() => setRun(undefined)} />}
      <CommandLine text={`ferry runbooks list --install ${install.name}`} />
    </>
  )
}

function Run({ runbook, onClose }: { runbook: InstallRunbook; onClose: () => void }) {
  const org = useOrg()
  const go = useGo()
  const { install, can } = useInstall()
  const inputs = runbook.runbook?.configs?.[0]?.inputs ?? []
  const [values, setValues] = useState<Record<string, string>>({})
  const [planOnly, setPlanOnly] = useState(false)
  const missing = inputs.find((it) => it.required && !it.default && !values[it.name])
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Run ${runbook.runbook?.name ?? 'the runbook'} in ${install.name}`}
      label="Run"
      reason={cannot(can, 'runbook') ?? (missing ? `${missing.display_name || missing.name} is required.` : undefined)}
      perform={(key) =>
        post<{ install_workflow_id: string }>(path`/v1/installs/${install.id}/runbooks/${runbook.runbook_id}/runs`, { org: org.id, body: { ...(Object.keys(values).length > 0 ? { inputs: values } : {}), ...(planOnly ? { plan_only: true } : {}) }, idempotency: key })
      }
      then={(result) => go(org.to.run((result as { install_workflow_id: string }).install_workflow_id))}
    >
      {inputs.map((it) => (
        <TextField
          key={it.name}
          label={`${it.display_name || it.name}${it.required ? '' : ' (optional)'}`}
          hint={it.description}
          type={it.sensitive ? 'password' : 'text'}
          placeholder={it.default}
          value={values[it.name] ?? ''}
          onChange={(event) => setValues({ ...values, [it.name]: event.target.value })}
          autoComplete="off"
        />
      ))}
      <Check label="Plan only" checked={planOnly} onChange={(event) => setPlanOnly(event.target.checked)} />
    </Confirm>
  )
}
