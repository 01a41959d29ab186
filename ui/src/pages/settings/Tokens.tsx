import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, post, remove } from '../../api/client'
import { tokens } from '../../api/queries'
import type { RoleName, Token } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Dialog } from '../../base/Dialog'
import { Empty } from '../../base/Failure'
import { SelectField, TextField } from '../../base/Field'
import { Command } from '../../base/Id'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Confirm } from '../../parts/act'
import { LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { CommandLine } from '../../parts/Page'
import { To } from '../../parts/To'
import { RolePick } from './Members'

const DAY = 86_400

/** Tokens of programs. */
export function Tokens() {
  const org = useOrg()
  const admin = useNeeds('admin')
  const query = useInfiniteQuery(tokens(org.id))
  const [making, setMaking] = useState(false)
  const [name, setName] = useState('')
  const [role, setRole] = useState<RoleName>('read-only')
  const [days, setDays] = useState('90')
  const [made, setMade] = useState<Token>()
  const [gone, setGone] = useState<Token>()
  return (
    <>
      <div className="row">
        <Button kind="primary" reason={admin} onClick={() => setMaking(true)}>
          New token
        </Button>
      </div>
      <LoadedList query={query} empty={<Empty command="ferry tokens create ci --role operator">No tokens. Programs use them to call the API.</Empty>}>
        {(rows) => (
          <Table
            label="Tokens"
            rows={rows}
            id={(it) => it.id}
            rowProps={(it) => ({ 'data-off': Boolean(it.revoked_at) })}
            columns={[
              { key: 'name', head: 'Token', plain: true, cell: (it) => <span><b><bdi>{it.name}</bdi></b> <code className="muted">{it.hint}</code></span> },
              { key: 'role', head: 'Role', fit: true, cell: (it) => it.role },
              { key: 'for', head: 'For', fit: true, cell: (it) => it.runner_id && <To to={org.to.runner(it.runner_id)}>a runner's telemetry</To> },
              { key: 'used', head: 'Used', fit: true, cell: (it) => <Time at={it.last_used_at} /> },
              { key: 'until', head: 'Expires', fit: true, cell: (it) => (it.revoked_at ? <Chip status="revoked" /> : <Time at={it.expires_at} />) },
              { key: 'at', head: 'Made', fit: true, cell: (it) => <Time at={it.created_at} /> },
              { key: 'revoke', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => !it.revoked_at && <Button small reason={admin} onClick={() => setGone(it)}>Revoke</Button> },
            ]}
          />
        )}
      </LoadedList>
      <Confirm open={making} onClose={() => setMaking(false)} title="New token" label="Create" reason={name.trim() === '' ? 'Give it a name.' : undefined} perform={(key) => post<Token>('/v1/tokens', { org: org.id, body: { name: name.trim(), role, ...(days === '' ? {} : { expires_in_s: Number(days) * DAY }) }, idempotency: key })} then={(it) => { setMade(it as Token); setName('') }}>
        <TextField label="Name" hint="What uses it." value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" />
        <RolePick value={role} onChange={setRole} />
        <SelectField label="Expires" value={days} onChange={(event) => setDays(event.target.value)}>
          <option value="7">in 7 days</option>
          <option value="30">in 30 days</option>
          <option value="90">in 90 days</option>
          <option value="365">in a year</option>
          <option value="">never</option>
        </SelectField>
      </Confirm>
      <Dialog open={made !== undefined} onClose={() => setMade(undefined)} title={<>The token <bdi>{made?.name}</bdi></>} actions={<Button autoFocus onClick={() => setMade(undefined)}>Close</Button>}>
        <p>Copy it now: it is not shown again.</p>
        {made?.token && <Command text={made.token} />}
      </Dialog>
      <Confirm open={gone !== undefined} onClose={() => setGone(undefined)} title={<>Revoke <bdi>{gone?.name}</bdi>?</>} label="Revoke" danger reason={admin} perform={() => remove(path`/v1/tokens/${gone?.id ?? ''}`, { org: org.id })}>
        <p>Whatever uses it is refused from now on.</p>
      </Confirm>
      <CommandLine text="ferry tokens list" />
    </>
  )
}
