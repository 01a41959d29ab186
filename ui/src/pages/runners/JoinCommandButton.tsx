import { useState } from 'react'
import { path, post } from '../../api/client'
import type { JoinCommand } from '../../api/types'
import { Button } from '../../base/Button'
import { Dialog } from '../../base/Dialog'
import { Failure } from '../../base/Failure'
import { Command } from '../../base/Id'
import { useAct } from '../../parts/act'
import { failureInfo } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'

/** Makes the command with which a customer starts a runner. It is shown once. */
export function JoinCommandButton({ runner, reason }: { runner: string; reason?: string | undefined }) {
  const org = useOrg()
  const act = useAct()
  const admin = useNeeds('admin')
  const [made, setMade] = useState<JoinCommand>()
  return (
    <>
      <Button reason={reason ?? admin} busy={act.busy} onClick={() => void act.run<JoinCommand>((key) => post(path`/v1/runners/${runner}/join-commands`, { org: org.id, idempotency: key })).then((it) => it && setMade(it))}>
        Make a join command
      </Button>
      {act.error && <Failure error={failureInfo(act.error)} />}
      <Dialog
        open={made !== undefined}
        onClose={() => setMade(undefined)}
        title="The command that starts the runner"
        wide
        actions={
          <Button autoFocus onClick={() => setMade(undefined)}>
            Close
          </Button>
        }
      >
        {made && (
          <>
            <p>Run it on the customer's side. It holds a credential: it is shown only now, and works once.</p>
            <Command text={made.command} />
          </>
        )}
      </Dialog>
    </>
  )
}
