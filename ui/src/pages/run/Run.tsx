import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { patch, path, post } from '../../api/client'
import { plan as planQuery, run as runQuery } from '../../api/queries'
import type { PlanView, RunStep, RunView } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip, Mark } from '../../base/Chip'
import { Note } from '../../base/Failure'
import { Time, Took } from '../../base/Time'
import { Id } from '../../base/Id'
import { isOpen } from '../../lib/status'
import { Confirm } from '../../parts/act'
import { Answer } from '../../parts/approve/Answer'
import { Loaded } from '../../parts/Loaded'
import { LogView } from '../../parts/logview/LogView'
import { cannot, useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { lastSeen, markSeen, Since } from '../../parts/plan/Since'
import { Plan } from '../../parts/plan/Plan'
import { remember } from '../../parts/prefs'
import { useShortcuts } from '../../parts/shortcuts'
import { To, useParamsState } from '../../parts/To'
import { Outputs } from './Outputs'
import { Rail } from './Rail'
import { StepHead } from './StepHead'
import styles from './Run.module.css'

type Tab = 'plan' | 'log' | 'outputs'

/** What will change, and why does it wait? */
export function Run() {
  const org = useOrg()
  const { workflow = '' } = useParams({ strict: false })
  const query = useQuery(runQuery(org.id, workflow))
  return <Loaded query={query}>{(run) => <Shown key={run.id} run={run} />}</Loaded>
}

function Shown({ run }: { run: RunView }) {
  const org = useOrg()
  const [params, set] = useParamsState()
  const [asking, setAsking] = useState<'cancel' | 'all'>()
  const steps = run.steps
  const selected = steps.find((it) => it.id === params.step) ?? steps.find((it) => it.id === run.focus) ?? steps.findLast((it) => !it.replaced) ?? steps[0]

  useEffect(() => remember(org.id, { to: org.to.run(run.id), name: `${run.install_name} / ${run.title}`, kind: 'run' }), [org, run.id, run.install_name, run.title])

  const move = (by: number) => {
    const shown = steps.filter((it) => !it.replaced || it.id === selected?.id)
    const at = shown.findIndex((it) => it.id === selected?.id)
    const next = shown[at + by]
    if (next) set({ step: next.id, tab: undefined })
  }
  const cancelOff = cannot(run.can, 'cancel')
  const allOff = cannot(run.can, 'approve_all')
  const open = isOpen(run.status)
  // What destroys asks for the install's name, whether it waits now or comes later.
  const destroys = /teardown|deprovision/.test(run.type) || steps.some((it) => it.status === 'approval-awaiting' && ((it.data_loss ?? 0) > 0 || (it.changes?.destroy ?? 0) > 0 || (it.changes?.replace ?? 0) > 0))
  useShortcuts([
    { keys: 'j', does: 'Next step', run: () => move(1) },
    { keys: 'k', does: 'Previous step', run: () => move(-1) },
    { keys: 'p', does: 'Show the plan', run: () => set({ tab: 'plan' }) },
    { keys: 'l', does: 'Show the log', run: () => set({ tab: 'log' }) },
    { keys: 'o', does: 'Show the outputs', run: () => set({ tab: 'outputs' }) },
    { keys: 'A', does: 'Approve all plans of this run', run: () => !allOff && setAsking('all') },
    { keys: 'c', does: 'Cancel this run', run: () => !cancelOff && setAsking('cancel') },
  ])

  return (
    <Page
      title={run.title}
      name={`${run.title} · ${run.install_name}`}
      crumbs={[{ to: org.to.install(run.install_id), name: run.install_name }]}
      command={run.command || `ferry workflows watch ${run.id}`}
      chips={
        <>
          <Chip status={run.status} kind="workflow" />
          {run.plan_only && <Mark role="neutral">plan only</Mark>}
          {run.approval_option === 'approve-all' && <Mark role="neutral">approves all plans</Mark>}
          {run.config_version !== undefined && (
            <span className="muted">
              <bdi>{run.app_name}</bdi> v{run.config_version}
            </span>
          )}
          <span className="muted">
            by <bdi>{run.created_by}</bdi>, <Time at={run.created_at} />
            {run.started_at && (
              <>
                , {run.finished_at ? 'took' : 'for'} <Took from={run.started_at} to={run.finished_at} />
              </>
            )}
          </span>
          <Id id={run.id} what="run id" />
        </>
      }
      actions={
        open && (
          <>
            {run.approval_option !== 'approve-all' && (
              <Button reason={allOff} onClick={() => setAsking('all')}>
                Approve all
              </Button>
            )}
            <Button reason={cancelOff} onClick={() => setAsking('cancel')}>
              Cancel
            </Button>
          </>
        )
      }
    >
      {run.trouble && (
        <Note role={run.status === 'warning' ? 'warn' : 'bad'}>
          <span dir="auto">{run.trouble}</span>
        </Note>
      )}
      {run.cancelled_by && (
        <p className="muted">
          Cancelled by <bdi>{run.cancelled_by}</bdi>.
        </p>
      )}
      {run.waits && !(run.waits.code === 'approval' && selected?.status === 'approval-awaiting') && <Waits run={run} />}
      <div className={styles.split}>
        <Rail run={run} selected={selected?.id} onSelect={(id) => set({ step: id, tab: undefined }, false)} />
        {selected ? <Step key={selected.id} run={run} step={selected} tab={params.tab as Tab | undefined} setTab={(tab) => set({ tab, step: selected.id })} onAnswered={() => set({ step: undefined, tab: undefined })} pin={() => set({ step: selected.id })} /> : <p className="muted">This run has no steps.</p>}
      </div>
      <Confirm
        open={asking === 'cancel'}
        onClose={() => setAsking(undefined)}
        title="Cancel this run?"
        label="Cancel the run"
        danger
        reason={cancelOff}
        perform={(key) => post(path`/v1/workflows/${run.id}/cancel`, { org: org.id, idempotency: key })}
      >
        <p>No more steps begin, and running ones are interrupted. What was applied stays.</p>
      </Confirm>
      <Confirm
        open={asking === 'all'}
        onClose={() => setAsking(undefined)}
        title="Approve all plans of this run?"
        label="Approve all"
        reason={allOff}
        danger={destroys}
        word={destroys ? run.install_name : undefined}
        perform={() => patch(path`/v1/workflows/${run.id}`, { org: org.id, body: { approval_option: 'approve-all' } })}
      >
        <p>
          {steps.filter((it) => it.status === 'approval-awaiting').length} wait now. Later plans of this run are applied without a question, whatever they change. Plans whose last outcome is unknown still ask.{destroys && ' This run destroys something.'}
        </p>
      </Confirm>
    </Page>
  )
}

/** Why it waits, in one sentence, with a link to what it waits for. */
function Waits({ run }: { run: RunView }) {
  const org = useOrg()
  const waits = run.waits
  if (!waits) return null
  const link =
    waits.subject_type === 'runner' && waits.subject_id
      ? org.to.runner(waits.subject_id)
      : waits.subject_type === 'workflow' && waits.subject_id
        ? org.to.run(waits.subject_id)
        : waits.code === 'stack'
          ? org.to.install(run.install_id, 'stack')
          : waits.subject_type === 'build' && waits.subject_id
            ? org.to.build(waits.subject_id)
            : undefined
  return (
    <Note role={waits.code === 'approval' ? 'ask' : waits.code.startsWith('runner-') ? 'warn' : 'neutral'}>
      <span dir="auto">{waits.text}</span> {link && <To to={link}>Show it</To>}
    </Note>
  )
}

interface StepProps {
  run: RunView
  step: RunStep
  tab: Tab | undefined
  setTab: (tab: Tab) => void
  /** The page goes on with whatever comes next. */
  onAnswered: () => void
  /** The page stays at this step. */
  pin: () => void
}

function Step({ run, step, tab: wanted, setTab, onAnswered, pin }: StepProps) {
  const org = useOrg()
  const hasPlan = Boolean(step.digest)
  const hasLog = Boolean(step.log_stream_id)
  const working = step.status === 'in-progress'
  const tabs = (['plan', 'log', 'outputs'] as const).filter((it) => (it === 'plan' ? hasPlan : it === 'log' ? hasLog : Boolean(step.job_id)))
  const fallback: Tab = hasPlan && !working && step.status !== 'error' ? 'plan' : hasLog ? 'log' : (tabs[0] ?? 'plan')
  const tab = wanted && tabs.includes(wanted) ? wanted : fallback
  const query = useQuery({ ...planQuery(org.id, step.id), enabled: hasPlan })
  const waits = step.status === 'approval-awaiting'
  // A plan that is replaced under an open dialog stays, so that the dialog can say so.
  const [asked, setAsked] = useState(false)
  const hasWaited = waits || asked
  const onAsk = () => {
    setAsked(true)
    pin()
  }
  return (
    <section className={styles.detail} aria-label={step.name}>
      <StepHead run={run} step={step} />
      {tabs.length > 1 && (
        <div className={styles.tabs} role="tablist" aria-label="Of this step">
          {tabs.map((it) => (
            <button key={it} type="button" role="tab" aria-selected={tab === it} className={styles.tab} onClick={() => setTab(it)}>
              {it === 'plan' ? 'Plan' : it === 'log' ? 'Log' : 'Outputs'}
            </button>
          ))}
        </div>
      )}
      {tab === 'plan' && hasPlan && <Loaded query={query}>{(plan) => <PlanOf plan={plan} />}</Loaded>}
      {tab === 'log' && hasLog && step.log_stream_id && (
        <>
          <LogView log={step.log_stream_id} />
          {step.job_id && (
            <p className="small">
              <To to={org.to.job(step.job_id)}>Open the log on its own page</To>
            </p>
          )}
        </>
      )}
      {tab === 'outputs' && step.job_id && <Outputs job={step.job_id} />}
      {hasWaited && query.data && <Waiting plan={query.data} run={run} onAnswered={onAnswered} onAsk={onAsk} />}
    </section>
  )
}

function PlanOf({ plan }: { plan: PlanView }) {
  const org = useOrg()
  const [against] = useState(() => lastSeen(org.id, plan) ?? plan.earlier?.[0])
  return (
    <>
      <Plan plan={plan} untitled />
      {against && <Since plan={plan} against={against} />}
    </>
  )
}

/** What was looked at is remembered only once it is on the screen. */
function Waiting({ plan, run, onAnswered, onAsk }: { plan: PlanView; run: RunView; onAnswered: () => void; onAsk: () => void }) {
  const org = useOrg()
  const [before, setBefore] = useState<string>()
  useEffect(() => {
    setBefore(lastSeen(org.id, plan))
    markSeen(org.id, plan)
  }, [org.id, plan.digest])
  return <Answer plan={plan} installName={run.install_name} before={before} onAnswered={onAnswered} onAsk={onAsk} />
}
