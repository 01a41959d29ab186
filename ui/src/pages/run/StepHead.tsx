import { useState } from 'react'
import { path, post } from '../../api/client'
import type { RunStep, RunView } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip, Mark } from '../../base/Chip'
import { Note } from '../../base/Failure'
import { Id } from '../../base/Id'
import { Time } from '../../base/Time'
import { SelectField, TextArea } from '../../base/Field'
import { Act, Confirm } from '../../parts/act'
import { Changes } from '../../parts/Changes'
import { cannot, useOrg } from '../../parts/org'
import { useShortcuts } from '../../parts/shortcuts'
import { To } from '../../parts/To'
import { shortDigest, words } from '../../lib/format'
import styles from './Run.module.css'

/** How a step stands, why, and what may be done about it. */
export function StepHead({ run, step }: { run: RunView; step: RunStep }) {
  const org = useOrg()
  const [asking, setAsking] = useState<'skip' | 'settle'>()
  const retryOff = cannot(step.can, 'retry')
  const skipOff = cannot(step.can, 'skip')
  const canRetry = step.can.retry?.ok === true
  const canSkip = step.can.skip?.ok === true
  const over = ['error', 'unknown', 'approval-denied', 'approval-expired', 'not-attempted'].includes(step.status)
  const unknown = step.status === 'unknown' || step.job_status === 'unknown'
  const retry = (key: string) => post(path`/v1/workflows/${run.id}/steps/${step.id}/retry`, { org: org.id, idempotency: key })
  useShortcuts([
    ...(canRetry ? [{ keys: 'r', does: 'Retry this step', run: () => document.querySelector<HTMLButtonElement>('#retry-step')?.click() }] : []),
    ...(canSkip && step.status !== 'approval-awaiting' ? [{ keys: 's', does: 'Skip this step', run: () => setAsking('skip') }] : []),
  ])
  return (
    <div className={styles.stepHead}>
      <div className={styles.stepTitle}>
        <h2>
          <bdi>{step.name}</bdi>
        </h2>
        <Chip status={step.status} kind="step" />
        {step.replaced && <Mark role="neutral">replaced by a newer attempt</Mark>}
        <Changes changes={step.changes} loss={step.data_loss} warned={step.policies?.warned} denied={step.policies?.denied} />
        <span className="muted small row">
          {step.started_at && <Time at={step.started_at} />}
          {step.role && (
            <>
              role <bdi>{step.role}</bdi>
            </>
          )}
          {step.component && (
            <To to={org.to.component(run.install_id, step.component)}>
              <bdi>{step.component}</bdi>
            </To>
          )}
          <Id id={step.id} what="step id" />
        </span>
      </div>
      {step.reason && step.status !== 'approval-awaiting' && (
        <Note role={over ? 'bad' : 'neutral'}>
          <span dir="auto">{step.reason}</span>
        </Note>
      )}
      {step.waits && step.status !== 'approval-awaiting' && (
        <Note role="neutral">
          <span dir="auto">{step.waits.text}</span>
        </Note>
      )}
      {step.status === 'approval-awaiting' && step.expires_at && (
        <p className="muted">
          Plan <code title={step.digest}>{shortDigest(step.digest ?? '')}</code> waits for an approval; it expires <Time at={step.expires_at} />.
        </p>
      )}
      {step.answer && (
        <p>
          <Chip status={step.answer.type === 'approve' ? 'approved' : step.answer.type.startsWith('deny') ? 'denied' : 'discarded'} /> {words(step.answer.type)} by <bdi>{step.answer.created_by_id}</bdi>{' '}
          <Time at={step.answer.created_at} />
          {step.answer.note && (
            <>
              : <bdi>{step.answer.note}</bdi>
            </>
          )}
        </p>
      )}
      {(step.progress?.length ?? 0) > 0 && (
        <ul className={styles.progress} aria-label="Resources at work">
          {step.progress?.slice(0, 6).map((it) => (
            <li key={it.address}>
              <Chip status={it.status} bare /> <bdi className="mono">{it.address}</bdi> <span className="muted small">{it.action}{it.took_s !== undefined ? `, ${it.took_s} s` : ''}</span>
            </li>
          ))}
        </ul>
      )}
      {(canRetry || canSkip || over || unknown) && step.status !== 'approval-awaiting' && !step.replaced && (
        <div className="row">
          <Act id="retry-step" reason={retryOff} perform={retry}>
            Retry
          </Act>
          <Button reason={skipOff} onClick={() => setAsking('skip')}>
            Skip
          </Button>
          {unknown && step.job_id && (
            <Button reason={cannot(step.can, 'settle')} onClick={() => setAsking('settle')}>
              Settle
            </Button>
          )}
        </div>
      )}
      <Confirm open={asking === 'skip'} onClose={() => setAsking(undefined)} title={`Skip ${step.name}?`} label="Skip" reason={skipOff} perform={(key) => post(path`/v1/workflows/${run.id}/steps/${step.id}/skip`, { org: org.id, idempotency: key })}>
        <p>The run goes on without it, and ends with a warning. What it left behind stays.</p>
      </Confirm>
      {step.job_id && <Settle job={step.job_id} open={asking === 'settle'} onClose={() => setAsking(undefined)} />}
    </div>
  )
}

/** Records how a job ended whose result nobody knows. */
export function Settle({ job, open, onClose }: { job: string; open: boolean; onClose: () => void }) {
  const org = useOrg()
  const [outcome, setOutcome] = useState('')
  const [note, setNote] = useState('')
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title="Record how this job ended"
      label="Record"
      reason={outcome === '' ? 'Choose the outcome that you found.' : undefined}
      perform={(key) => post(path`/v1/runner-jobs/${job}/settle`, { org: org.id, body: { outcome, note }, idempotency: key })}
      done="The outcome is recorded"
    >
      <p>The job began, and its runner vanished before it could report. Look at what it changed before you answer: the run goes on from what you say.</p>
      <SelectField label="It ended" value={outcome} onChange={(event) => setOutcome(event.target.value)}>
        <option value="">choose</option>
        <option value="finished">finished: all was done</option>
        <option value="failed">failed</option>
      </SelectField>
      <TextArea label="Note" hint="How you know." value={note} onChange={(event) => setNote(event.target.value)} />
    </Confirm>
  )
}
