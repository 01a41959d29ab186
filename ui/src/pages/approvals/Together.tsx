import { Note } from '../../base/Failure'
import { shortDigest } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { respond } from '../../parts/approve/Answer'
import { useLiveState } from '../../parts/live'
import { useOrg } from '../../parts/org'
import { changesText, dataLossText } from '../../parts/words'
import type { Group } from './Approvals'
import styles from './Approvals.module.css'

/** Equal plans in one dialog: every install is named, and each answer names its own digest. */
export function Together({ group, current, onClose }: { group: Group; current: Group | undefined; onClose: () => void }) {
  const org = useOrg()
  const live = useLiveState()
  const it = group.first
  const now = new Map(current?.items.map((item) => [item.step_id, item.digest]))
  const changed = group.items.filter((item) => now.get(item.step_id) !== item.digest)
  const forbidden = group.items.find((item) => !item.can_approve.ok)
  const loss = Math.max(...group.items.map((item) => item.data_loss))
  const reason =
    live.is !== 'live' ? 'This page is not live. Wait until it is.' : (forbidden && `${forbidden.install_name}: ${forbidden.can_approve.reason ?? 'not possible now'}`) || (changed.length > 0 ? 'Some of these plans were answered or replaced. Close this and look again.' : undefined)

  const perform = async (key: string) => {
    const failed: string[] = []
    // One after the other: what is refused is named, the others are approved.
    for (const item of group.items) {
      try {
        await respond(org.id, item.workflow_id, item.step_id, item.digest, { response_type: 'approve' }, `${key}-${item.step_id}`)
      } catch (error) {
        failed.push(`${item.install_name}: ${error instanceof Error ? error.message : 'failed'}`)
      }
    }
    if (failed.length > 0) throw new Error(`${group.items.length - failed.length} approved. Not approved: ${failed.join('; ')}`)
    return true
  }

  return (
    <Confirm
      open
      onClose={onClose}
      title={`Approve ${it.title} in ${group.items.length} installs?`}
      label={`Approve ${group.items.length} plans`}
      danger={loss > 0}
      word={loss > 0 ? String(group.items.length) : undefined}
      reason={reason}
      wide
      perform={perform}
      done={`${group.items.length} plans approved`}
    >
      {reason && <Note role="warn">{reason}</Note>}
      <p>Each would do the same: {changesText(it.changes)}.</p>
      {loss > 0 && <Note role="bad">{dataLossText(loss)}, in each of them.</Note>}
      <ul className={styles.installs}>
        {group.items.map((item) => (
          <li key={item.step_id}>
            <bdi>{item.install_name}</bdi> <code className="muted">{shortDigest(item.digest)}</code>
          </li>
        ))}
      </ul>
    </Confirm>
  )
}
