import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { patch, path, post, remove } from '../../api/client'
import { invites, members } from '../../api/queries'
import type { OrgInvite, OrgMember, RoleName } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Dialog } from '../../base/Dialog'
import { SelectField, TextField } from '../../base/Field'
import { Command } from '../../base/Id'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Confirm } from '../../parts/act'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'

export const roles: { role: RoleName; may: string }[] = [
  { role: 'read-only', may: 'sees everything' },
  { role: 'approver', may: 'also approves and denies plans' },
  { role: 'operator', may: 'also deploys, runs, cancels' },
  { role: 'admin', may: 'also manages members, tokens, runners' },
]

export function RolePick({ value, onChange }: { value: RoleName; onChange: (role: RoleName) => void }) {
  return (
    <SelectField label="Role" value={value} onChange={(event) => onChange(event.target.value as RoleName)}>
      {roles.map((it) => (
        <option key={it.role} value={it.role}>
          {it.role}: {it.may}
        </option>
      ))}
    </SelectField>
  )
}

/** Who may? */
export function Members() {
  const org = useOrg()
  const admin = useNeeds('admin')
  const query = useQuery(members(org.id))
  const invited = useInfiniteQuery({ ...invites(org.id), enabled: admin === undefined })
  const [inviting, setInviting] = useState(false)
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<RoleName>('approver')
  const [made, setMade] = useState<OrgInvite>()
  const [changing, setChanging] = useState<OrgMember>()
  const [leaving, setLeaving] = useState<OrgMember>()
  const [revoking, setRevoking] = useState<OrgInvite>()
  return (
    <>
      <div className="row">
        <Button kind="primary" reason={admin} onClick={() => setInviting(true)}>
          Invite
        </Button>
      </div>
      <Loaded query={query}>
        {(rows) => (
          <Table
            label="Members"
            rows={rows}
            id={(it) => it.account_id}
            columns={[
              { key: 'email', head: 'Member', plain: true, cell: (it) => <span><bdi>{it.email}</bdi>{it.account_id === org.session.account_id && <span className="muted"> (you)</span>}</span> },
              { key: 'role', head: 'Role', fit: true, cell: (it) => it.role },
              { key: 'groups', head: 'By group', cell: (it) => <bdi className="muted">{it.groups_of?.join(', ')}</bdi> },
              { key: 'seen', head: 'Seen', fit: true, cell: (it) => <Time at={it.seen_at} /> },
              { key: 'since', head: 'Since', fit: true, cell: (it) => <Time at={it.created_at} /> },
              { key: 'change', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <span className="row"><Button small reason={admin} onClick={() => { setRole(it.role); setChanging(it) }}>Role</Button><Button small reason={admin} onClick={() => setLeaving(it)}>Remove</Button></span> },
            ]}
          />
        )}
      </Loaded>
      {admin === undefined && (
        <Section title="Invites">
          <LoadedList query={invited} empty={<p className="muted">Nobody is invited.</p>}>
            {(rows) => (
              <Table
                label="Invites"
                rows={rows}
                id={(it) => it.id}
                columns={[
                  { key: 'email', head: 'Address', plain: true, cell: (it) => <bdi>{it.email}</bdi> },
                  { key: 'role', head: 'Role', fit: true, cell: (it) => it.role },
                  { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="invite" /> },
                  { key: 'until', head: 'Expires', fit: true, cell: (it) => <Time at={it.expires_at} /> },
                  { key: 'revoke', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => it.status === 'pending' && <Button small onClick={() => setRevoking(it)}>Revoke</Button> },
                ]}
              />
            )}
          </LoadedList>
        </Section>
      )}
      <Confirm open={inviting} onClose={() => setInviting(false)} title="Invite somebody" label="Invite" reason={/^\S+@\S+$/.test(email.trim()) ? undefined : 'Write an e-mail address.'} perform={(key) => post<OrgInvite>('/v1/orgs/current/invites', { org: org.id, body: { email: email.trim(), role }, idempotency: key })} then={(it) => { setMade(it as OrgInvite); setEmail('') }}>
        <TextField label="E-mail" type="email" value={email} onChange={(event) => setEmail(event.target.value)} autoComplete="off" />
        <RolePick value={role} onChange={setRole} />
      </Confirm>
      <Dialog open={made !== undefined} onClose={() => setMade(undefined)} title={<>Send this link to <bdi>{made?.email}</bdi></>} actions={<Button autoFocus onClick={() => setMade(undefined)}>Close</Button>}>
        <p>{made?.mailed ? 'It was mailed, too. ' : ''}It works once, for this address, until <Time at={made?.expires_at} exact />, and is shown only now.</p>
        {made?.url && <Command text={made.url} />}
      </Dialog>
      <Confirm open={changing !== undefined} onClose={() => setChanging(undefined)} title={<>Role of <bdi>{changing?.email}</bdi></>} label="Save" reason={admin} perform={() => patch(path`/v1/members/${changing?.account_id ?? ''}`, { org: org.id, body: { role } })}>
        <RolePick value={role} onChange={setRole} />
      </Confirm>
      <Confirm open={leaving !== undefined} onClose={() => setLeaving(undefined)} title={<>Remove <bdi>{leaving?.email}</bdi>?</>} label="Remove" danger reason={admin} perform={() => remove(path`/v1/members/${leaving?.account_id ?? ''}`, { org: org.id })}>
        <p>Browsers and CLIs of this member are signed out at once. Tokens and invites that they made end.</p>
        {(leaving?.groups_of?.length ?? 0) > 0 && <p>A group gives them a role: remove them there, too.</p>}
      </Confirm>
      <Confirm open={revoking !== undefined} onClose={() => setRevoking(undefined)} title={<>Revoke the invite of <bdi>{revoking?.email}</bdi>?</>} label="Revoke" danger perform={() => remove(path`/v1/orgs/current/invites/${revoking?.id ?? ''}`, { org: org.id })}>
        <p>Its link stops working.</p>
      </Confirm>
      <CommandLine text="ferry members list" />
    </>
  )
}
