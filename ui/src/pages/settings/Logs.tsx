import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { patch } from '../../api/client'
import { logKeeping } from '../../api/queries'
import type { LogKeeping } from '../../api/types'
import { Button } from '../../base/Button'
import { Failure } from '../../base/Failure'
import { TextField } from '../../base/Field'
import { bytes, count } from '../../lib/format'
import { useAct } from '../../parts/act'
import { failureInfo, Loaded } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { CommandLine, Facts } from '../../parts/Page'

/** How long logs are kept, and how much of them. */
export function Logs() {
  const org = useOrg()
  const query = useQuery(logKeeping(org.id))
  return (
    <>
      <Loaded query={query}>{(it) => <Form key={`${it.retention_s} ${it.quota_bytes}`} it={it} />}</Loaded>
      <CommandLine text="ferry orgs logs" />
    </>
  )
}

const GiB = 1024 ** 3

function Form({ it }: { it: LogKeeping }) {
  const org = useOrg()
  const admin = useNeeds('admin')
  const act = useAct()
  const [days, setDays] = useState(it.retention_s ? String(it.retention_s / 86_400) : '')
  const [quota, setQuota] = useState(it.quota_bytes ? String(it.quota_bytes / GiB) : '')
  const bad = [days, quota].some((text) => text !== '' && !(Number(text) > 0))
  return (
    <form
      className="stack"
      style={{ maxWidth: 480 }}
      onSubmit={(event) => {
        event.preventDefault()
        if (!admin && !bad) void act.run(() => patch('/v1/orgs/current/logs', { org: org.id, body: { retention_s: days === '' ? null : Math.round(Number(days) * 86_400), quota_bytes: quota === '' ? null : Math.round(Number(quota) * GiB) } }), 'Log retention saved')
      }}
    >
      <Facts facts={[['Logs', count(it.logs)], ['Size', bytes(it.size_bytes)]]} />
      <TextField label="Delete logs after, days" hint="After their last line. Empty keeps them." type="number" min={0} step="any" value={days} onChange={(event) => setDays(event.target.value)} readOnly={admin !== undefined} />
      <TextField label="Keep at most, GiB" hint="The oldest logs go first. Empty sets no limit." type="number" min={0} step="any" value={quota} onChange={(event) => setQuota(event.target.value)} readOnly={admin !== undefined} />
      {act.error && <Failure error={failureInfo(act.error)} />}
      <div>
        <Button type="submit" kind="primary" busy={act.busy} reason={admin ?? (bad ? 'These need numbers above 0.' : undefined)}>
          Save
        </Button>
      </div>
    </form>
  )
}
