import { useState } from 'react'
import { path, post } from '../../api/client'
import type { PlanView } from '../../api/types'
import { Button } from '../../base/Button'
import { Note } from '../../base/Failure'
import { TextArea } from '../../base/Field'
import { Menu } from '../../base/Menu'
import { plural, shortDigest } from '../../lib/format'
import { Confirm } from '../act'
import { useLiveState } from '../live'
import { cannot, useOrg } from '../org'
import { Since } from '../plan/Since'
import { useShortcuts } from '../shortcuts'
import { changesText, dataLossText } from '../words'
import styles from './Answer.module.css'

type Response = 'approve' | 'deny' | 'deny-skip-current' | 'deny-skip-current-and-dependents' | 'retry'

const titles: Record<Response, (what: string) => string> = {
  approve: (what) => `Approve ${what}?`,
  deny: (what) => `Deny ${what} and end the run?`,
  'deny-skip-current': (what) => `Skip ${what} and go on?`,
  'deny-skip-current-and-dependents': (what) => `Skip ${what} and what needs it?`,
  retry: (what) => `Plan ${what} again?`,
}

const labels: Record<Response, string> = { approve: 'Approve', deny: 'Deny', 'deny-skip-current': 'Skip', 'deny-skip-current-and-dependents': 'Skip both', retry: 'Plan again' }

export const respond = (org: string, workflow: string, step: string, digest: string, body: { response_type: string; note?: string }, idempotency?: string) =>
  post(path`/v1/workflows/${workflow}/steps/${step}/approvals/${digest}/response`, { org, body, idempotency })

interface Props {
  plan: PlanView
  installName: string
  /** The plan that was looked at before this one. */
  before?: string | undefined
  onAnswered?: (() => void) | undefined
  /** A dialog opened: what is shown must stay. */
  onAsk?: (() => void) | undefined
}

/** Approve and deny, bound to the plan on the screen: an answer names its digest, and another plan refuses it. */
export function Answer({ plan, installName, before, onAnswered, onAsk }: Props) {
  const org = useOrg()
  const live = useLiveState()
  const [asked, setAsked] = useState<{ response: Response; plan: PlanView }>()
  const [note, setNote] = useState('')

  const stale = live.is === 'live' ? undefined : 'This page is not live. Wait until it is: the plan may have changed.'
  const approveOff = cannot(plan.can, 'approve') ?? (plan.replaced_by_step ? 'A newer plan is waiting.' : stale)
  const denyOff = cannot(plan.can, 'deny') ?? (plan.replaced_by_step ? 'A newer plan is waiting.' : stale)
  const skipOff = cannot(plan.can, 'deny-skip-current') ?? denyOff
  const retryOff = cannot(plan.can, 'deny-skip-current') ?? stale
  const ask = (response: Response, off: string | undefined) => {
    if (off) return
    setAsked({ response, plan })
    onAsk?.()
  }

  useShortcuts([
    { keys: 'a', does: 'Approve this plan', run: () => ask('approve', approveOff) },
    { keys: 'd', does: 'Deny this plan', run: () => ask('deny', denyOff) },
    { keys: 's', does: 'Skip this plan and go on', run: () => ask('deny-skip-current', skipOff) },
  ])

  const shown = asked?.plan ?? plan
  const response = asked?.response ?? 'approve'
  // The dialog is about the plan that it was opened with.
  const outdated = plan.digest !== shown.digest || plan.step_id !== shown.step_id || plan.replaced_by_step ? 'A newer plan is waiting. Close this and review it.' : undefined
  const off = outdated ?? stale ?? cannot(plan.can, response === 'approve' || response === 'deny' ? response : 'deny-skip-current')
  const approving = response === 'approve'
  const seen = before ?? shown.earlier?.[0]
  return (
    <>
      <div className={styles.bar}>
        {approveOff && <p className={styles.why}>{approveOff}</p>}
        <Menu
          label="Deny"
          items={[
            { key: 'deny', label: 'Deny and end the run', reason: denyOff, onSelect: () => ask('deny', denyOff) },
            { key: 'skip', label: 'Deny, skip it and go on', reason: skipOff, onSelect: () => ask('deny-skip-current', skipOff) },
            { key: 'both', label: 'Deny, skip it and what needs it', reason: skipOff, onSelect: () => ask('deny-skip-current-and-dependents', skipOff) },
            { key: 'retry', label: 'Plan again', reason: retryOff, onSelect: () => ask('retry', retryOff) },
          ]}
        />
        <Button kind="primary" reason={approveOff} onClick={() => ask('approve', approveOff)}>
          Approve <code>{shortDigest(plan.digest)}</code>
        </Button>
      </div>
      <Confirm
        open={asked !== undefined}
        onClose={() => {
          setAsked(undefined)
          setNote('')
        }}
        title={
          <>
            <bdi>{titles[response](shown.title)}</bdi> <span className="muted">for</span> <bdi>{installName}</bdi>
          </>
        }
        label={approving ? `Approve ${shortDigest(shown.digest)}` : labels[response]}
        danger={approving ? shown.data_loss > 0 : response === 'deny'}
        word={approving && shown.data_loss > 0 ? installName : undefined}
        reason={off}
        perform={(key) => respond(org.id, shown.workflow_id, shown.step_id, shown.digest, { response_type: response, ...(note.trim() ? { note: note.trim() } : {}) }, key)}
        {...(onAnswered ? { then: onAnswered } : {})}
      >
        {off && <Note role="warn">{off}</Note>}
        {approving && (
          <>
            <p>
              {changesText(shown.changes)}. <span className="muted">Exactly the plan {shortDigest(shown.digest)} is applied, or nothing.</span>
            </p>
            {shown.data_loss > 0 && <Note role="bad">{dataLossText(shown.data_loss)}.</Note>}
            {(shown.policies?.warned ?? 0) > 0 && <Note role="warn">{plural(shown.policies?.warned ?? 0, 'policy warning')}: {shown.verdicts?.filter((it) => it.severity === 'warn').map((it) => it.message).join('; ')}</Note>}
            {seen && <Since plan={shown} against={seen} open />}
          </>
        )}
        {response === 'deny' && <p>Steps that run are not touched. No other step of this run begins.</p>}
        {response === 'deny-skip-current' && <p>What this plan would change stays as it is. The run ends with a warning.</p>}
        {response === 'deny-skip-current-and-dependents' && <p>This part and all parts that need it stay as they are. The run ends with a warning.</p>}
        {response === 'retry' && <p>This plan is dropped, and a new one asks again.</p>}
        {response !== 'retry' && <TextArea label="Note" hint="Everybody who looks at the run sees it." rows={2} value={note} onChange={(event) => setNote(event.target.value)} />}
      </Confirm>
    </>
  )
}
