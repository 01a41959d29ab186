import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, post, remove } from '../../api/client'
import { appSecrets } from '../../api/queries'
import type { AppVariable } from '../../api/types'
import { Button } from '../../base/Button'
import { Empty } from '../../base/Failure'
import { TextField } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Confirm } from '../../parts/act'
import { LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { useApp } from './AppFrame'

/** Variables of the app that builds and templates read; values are never shown. */
export function Secrets() {
  const org = useOrg()
  const app = useApp()
  const operator = useNeeds('operator')
  const query = useInfiniteQuery(appSecrets(org.id, app.id))
  const [adding, setAdding] = useState(false)
  const [gone, setGone] = useState<AppVariable>()
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  return (
    <>
      <div className="row">
        <Button reason={operator} onClick={() => setAdding(true)}>
          Set a variable
        </Button>
      </div>
      <LoadedList query={query} empty={<Empty>No variables. Builds and templates of the app read them; their values are never shown.</Empty>}>
        {(rows) => (
          <Table
            label="Variables"
            rows={rows}
            id={(it) => it.id}
            columns={[
              { key: 'name', head: 'Name', plain: true, cell: (it) => <bdi className="mono">{it.name}</bdi> },
              { key: 'value', head: 'Value', cell: (it) => <span className="muted">hidden, {it.length} characters</span> },
              { key: 'at', head: 'Set', fit: true, cell: (it) => <Time at={it.updated_at} /> },
              { key: 'remove', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <Button small reason={operator} onClick={() => setGone(it)}>Remove</Button> },
            ]}
          />
        )}
      </LoadedList>
      <Confirm open={adding} onClose={() => { setAdding(false); setValue('') }} title="Set a variable" label="Set" reason={name.trim() === '' || value === '' ? 'Give a name and a value.' : undefined} perform={(key) => post(path`/v1/apps/${app.id}/secret`, { org: org.id, body: { name: name.trim(), value }, idempotency: key })} then={() => setName('')}>
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" spellCheck={false} />
        <TextField label="Value" hint="It is stored encrypted." type="password" value={value} onChange={(event) => setValue(event.target.value)} autoComplete="new-password" />
      </Confirm>
      <Confirm open={gone !== undefined} onClose={() => setGone(undefined)} title={`Remove ${gone?.name ?? ''}?`} label="Remove" danger reason={operator} perform={() => remove(path`/v1/apps/${app.id}/secret/${gone?.id ?? ''}`, { org: org.id })}>
        <p>Builds and templates that read it fail from then on.</p>
      </Confirm>
    </>
  )
}
