import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { post, send } from '../../api/client'
import { sources } from '../../api/queries'
import type { SourceLogin } from '../../api/types'
import { Button } from '../../base/Button'
import { Empty } from '../../base/Failure'
import { TextField } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Confirm } from '../../parts/act'
import { Loaded } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { CommandLine } from '../../parts/Page'

/** Logins with which private repositories and registries are read. */
export function Sources() {
  const org = useOrg()
  const admin = useNeeds('admin')
  const query = useQuery(sources(org.id))
  const [adding, setAdding] = useState(false)
  const [gone, setGone] = useState<SourceLogin>()
  const [prefix, setPrefix] = useState('')
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  return (
    <>
      <div className="row">
        <Button kind="primary" reason={admin} onClick={() => setAdding(true)}>
          New login
        </Button>
      </div>
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty command="ferry sources login https://github.com/acme -u USER">No logins. Public sources need none.</Empty>
          ) : (
            <Table
              label="Source logins"
              rows={rows}
              id={(it) => it.prefix}
              columns={[
                { key: 'prefix', head: 'For', plain: true, cell: (it) => <bdi className="mono">{it.prefix}</bdi> },
                { key: 'user', head: 'User', cell: (it) => <bdi>{it.username}</bdi> },
                { key: 'until', head: 'Expires', fit: true, cell: (it) => <Time at={it.expires_at} /> },
                { key: 'at', head: 'Set', fit: true, cell: (it) => <Time at={it.created_at} /> },
                { key: 'remove', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <Button small reason={admin} onClick={() => setGone(it)}>Remove</Button> },
              ]}
            />
          )
        }
      </Loaded>
      <Confirm open={adding} onClose={() => { setAdding(false); setPassword('') }} title="New login" label="Save" reason={prefix.trim() && username.trim() && password ? undefined : 'Fill in all fields.'} perform={(key) => post('/v1/source-logins', { org: org.id, body: { prefix: prefix.trim(), username: username.trim(), password }, idempotency: key })}>
        <TextField label="For addresses that begin with" placeholder="https://github.com/acme" value={prefix} onChange={(event) => setPrefix(event.target.value)} autoComplete="off" spellCheck={false} />
        <TextField label="User" value={username} onChange={(event) => setUsername(event.target.value)} autoComplete="off" />
        <TextField label="Password or token" hint="It is stored encrypted and never shown." type="password" value={password} onChange={(event) => setPassword(event.target.value)} autoComplete="new-password" />
      </Confirm>
      <Confirm open={gone !== undefined} onClose={() => setGone(undefined)} title={<>Remove the login for <bdi>{gone?.prefix}</bdi>?</>} label="Remove" danger reason={admin} perform={() => send('DELETE', '/v1/source-logins/by-prefix', { org: org.id, query: { prefix: gone?.prefix } })}>
        <p>Builds that need it fail from then on.</p>
      </Confirm>
      <CommandLine text="ferry sources list" />
    </>
  )
}
