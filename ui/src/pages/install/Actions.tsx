import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { actionRuns, installActions, schedules } from '../../api/queries'
import type { InstallActionWorkflow, Job } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { TextArea, TextField } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { words } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { cannot, useNeeds, useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { PairsField, parsePairs } from '../../parts/PairsField'
import { To, useGo } from '../../parts/To'
import { startedRun, useInstall } from './use-install'

/** The vendor's scripts in this install: run one, see what ran, and when the next runs. */
export function Actions() {
  const org = useOrg()
  const { install, can } = useInstall()
  const query = useInfiniteQuery(installActions(org.id, install.id))
  const [run, setRun] = useState<InstallActionWorkflow>()
  const [adHoc, setAdHoc] = useState(false)
  const [open, setOpen] = useState('')
  const operator = useNeeds('operator')
  const off = cannot(can, 'action')
  const nameOf = (it: InstallActionWorkflow) => it.action_workflow?.name ?? it.action_workflow_id
  return (
    <>
      <div className="row">
        <Button reason={operator} onClick={() => setAdHoc(true)}>
          Run a command
        </Button>
      </div>
      <LoadedList query={query} empty={<Empty>The app has no actions. An action is a script of yours that runs in an install.</Empty>}>
        {(rows) => (
          <Table
            label="Actions"
            rows={rows}
            id={(it) => it.id}
            columns={[
              { key: 'name', head: 'Action', plain: true, cell: (it) => <b><bdi>{nameOf(it)}</bdi></b> },
              { key: 'status', head: 'Last run', fit: true, cell: (it) => (it.runs?.[0] ? <Chip status={it.runs[0].status} /> : <span className="muted">never</span>) },
              { key: 'open', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <span className="row"><Button small aria-expanded={open === it.id} onClick={() => setOpen(open === it.id ? '' : it.id)}>Runs</Button><Button small reason={off} onClick={() => setRun(it)}>Run</Button></span> },
            ]}
          />
        )}
      </LoadedList>
      {open && <Runs action={open} rows={query.data?.pages.flatMap((page) => page.data) ?? []} />}
      <Schedules />
      {run && <RunAction name={nameOf(run)} onClose={() => setRun(undefined)} />}
      {adHoc && <AdHoc onClose={() => setAdHoc(false)} />}
      <CommandLine text={`ferry actions list --install ${install.name}`} />
    </>
  )
}

function Runs({ action, rows }: { action: string; rows: InstallActionWorkflow[] }) {
  const org = useOrg()
  const { install } = useInstall()
  const it = rows.find((row) => row.id === action)
  const query = useQuery({ ...actionRuns(org.id, install.id, it?.action_workflow_id ?? ''), enabled: it !== undefined })
  if (!it) return null
  return (
    <Section title={<>Runs of <bdi>{it.action_workflow?.name}</bdi></>}>
      <Loaded query={query}>
        {(data) =>
          (data.runs?.length ?? 0) === 0 ? (
            <p className="muted">It never ran here.</p>
          ) : (
            <Table
              label="Runs"
              rows={data.runs ?? []}
              id={(run) => run.id}
              columns={[
                { key: 'status', head: 'Status', fit: true, cell: (run) => <Chip status={run.status} /> },
                { key: 'why', head: 'Trigger', cell: (run) => words(run.trigger_type) },
                { key: 'open', head: 'Run', cell: (run) => (run.workflow_id ? <To to={org.to.run(run.workflow_id)}>run</To> : run.job ? <To to={org.to.job(run.job.id)}>log</To> : null) },
                { key: 'what', head: 'Ended', cell: (run) => <span className="muted" dir="auto">{run.status_description}</span> },
                { key: 'at', head: 'Began', fit: true, cell: (run) => <Time at={run.created_at} /> },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

function Schedules() {
  const org = useOrg()
  const { install } = useInstall()
  const query = useQuery(schedules(org.id, install.id))
  return (
    <Section title="Schedules">
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="muted">Nothing is scheduled. Actions with a cron trigger and drift schedules appear here.</p>
          ) : (
            <Table
              label="Schedules"
              rows={rows}
              id={(it) => `${it.kind} ${it.name ?? ''} ${it.cron}`}
              columns={[
                { key: 'what', head: 'What', plain: true, cell: (it) => <bdi>{words(it.kind)} {it.name}</bdi> },
                { key: 'cron', head: 'Cron (UTC)', fit: true, cell: (it) => <code>{it.cron}</code> },
                { key: 'next', head: 'Next', fit: true, cell: (it) => <Time at={it.next_at} /> },
                { key: 'last', head: 'Last', fit: true, cell: (it) => (it.workflow_id ? <To to={org.to.run(it.workflow_id)}><Time at={it.last_at} /></To> : <Time at={it.last_at} />) },
                { key: 'note', head: 'Note', cell: (it) => <span className="muted">{it.note}</span> },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

function RunAction({ name, onClose }: { name: string; onClose: () => void }) {
  const org = useOrg()
  const go = useGo()
  const { install, can } = useInstall()
  const [env, setEnv] = useState('')
  const [role, setRole] = useState('')
  const { pairs, bad } = parsePairs(env)
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Run ${name} in ${install.name}`}
      label="Run"
      reason={cannot(can, 'action') ?? (bad === undefined ? undefined : 'Correct the environment.')}
      perform={(key) => post(path`/v1/installs/${install.id}/action-workflows/runs`, { org: org.id, body: { action: name, ...(Object.keys(pairs).length > 0 ? { run_env_vars: pairs } : {}), ...(role.trim() ? { role: role.trim() } : {}) }, idempotency: key })}
      then={(result) => go(org.to.run(startedRun(result)))}
    >
      <PairsField label="Environment" hint="One KEY=value a line; it overrides the action's own." value={env} onChange={setEnv} />
      <TextField label="Role" hint="Leave it empty for the action's own." value={role} onChange={(event) => setRole(event.target.value)} autoComplete="off" />
    </Confirm>
  )
}

/** A command that is no action of the app. */
function AdHoc({ onClose }: { onClose: () => void }) {
  const org = useOrg()
  const go = useGo()
  const { install } = useInstall()
  const operator = useNeeds('operator')
  const [script, setScript] = useState('')
  const [env, setEnv] = useState('')
  const { pairs, bad } = parsePairs(env)
  return (
    <Confirm
      open
      onClose={onClose}
      wide
      title={`Run a command in ${install.name}`}
      label="Run"
      reason={operator ?? (script.trim() === '' ? 'Write a command first.' : bad === undefined ? undefined : 'Correct the environment.')}
      perform={(key) => post<Job>(path`/v1/installs/${install.id}/action-runs`, { org: org.id, body: { steps: [{ name: 'command', inline_contents: script.startsWith('#!') ? script : `#!/bin/sh\nset -e\n${script}\n` }], ...(Object.keys(pairs).length > 0 ? { run_env_vars: pairs } : {}) }, idempotency: key })}
      then={(job) => go(org.to.job((job as Job).id))}
    >
      <p>It runs on the install's runner, in the customer's account. A customer can forbid such commands.</p>
      <TextArea label="Script" rows={6} value={script} onChange={(event) => setScript(event.target.value)} spellCheck={false} autoFocus />
      <PairsField label="Environment" value={env} onChange={setEnv} />
    </Confirm>
  )
}
