import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { planDiff } from '../../api/queries'
import type { PlanView } from '../../api/types'
import { Button } from '../../base/Button'
import { plural, shortDigest } from '../../lib/format'
import { Loaded } from '../Loaded'
import { useOrg } from '../org'
import { Tree } from './Plan'

const key = (org: string, plan: PlanView) => `ferry-seen-${org}-${plan.workflow_id}-${plan.component ?? plan.title}`

/** The digest of the plan of this part that was looked at last in this browser, where it is another one. */
export function lastSeen(org: string, plan: PlanView): string | undefined {
  try {
    const seen = sessionStorage.getItem(key(org, plan))
    return seen && seen !== plan.digest && plan.earlier?.includes(seen) ? seen : undefined
  } catch {
    return undefined
  }
}

export function markSeen(org: string, plan: PlanView) {
  try {
    sessionStorage.setItem(key(org, plan), plan.digest)
  } catch {
    // Then the comparison is with the plan before.
  }
}

/** How this plan differs from the one before it, or from the one that was looked at last. */
export function Since({ plan, against, open: opened = false }: { plan: PlanView; against: string; open?: boolean }) {
  const org = useOrg()
  const [open, setOpen] = useState(opened)
  const query = useQuery({ ...planDiff(org.id, plan.step_id, against), enabled: open })
  if (!open) {
    return (
      <Button small kind="quiet" onClick={() => setOpen(true)}>
        What changed since {shortDigest(against)}?
      </Button>
    )
  }
  return (
    <section aria-label="Changes since the earlier plan">
      <h3>Since the plan {shortDigest(against)}</h3>
      <Loaded query={query}>
        {(diff) =>
          diff.same ? (
            <p className="muted">It would do the same as the plan before.</p>
          ) : (
            <>
              {diff.added.length > 0 && (
                <>
                  <p className="small muted">Only in this plan: {diff.added.length}</p>
                  <Tree resources={diff.added} few={false} />
                </>
              )}
              {diff.changed.length > 0 && (
                <>
                  <p className="small muted">Other than it was: {diff.changed.length}</p>
                  <Tree resources={diff.changed} few={false} />
                </>
              )}
              {diff.removed.length > 0 && (
                <>
                  <p className="small muted">No longer planned: {diff.removed.length}</p>
                  <Tree resources={diff.removed} few={false} />
                </>
              )}
              {(diff.unchanged ?? 0) > 0 && <p className="small muted">{plural(diff.unchanged ?? 0, 'resource')} as before, not shown.</p>}
            </>
          )
        }
      </Loaded>
    </section>
  )
}
