import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { post } from '../../api/client'
import { apps } from '../../api/queries'
import type { App } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { TextField } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Confirm } from '../../parts/act'
import { Filters, Search } from '../../parts/filters/Filters'
import { LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { To, useGo, useParamsState } from '../../parts/To'

export function Apps() {
  const org = useOrg()
  const go = useGo()
  const [params, set] = useParamsState()
  const query = useInfiniteQuery(apps(org.id, { q: params.q }))
  const operator = useNeeds('operator')
  const [making, setMaking] = useState(false)
  const [name, setName] = useState('')
  return (
    <Page
      title="Apps"
      command="ferry apps list"
      actions={
        <Button reason={operator} onClick={() => setMaking(true)}>
          New app
        </Button>
      }
    >
      <Filters>
        <Search label="Name" value={params.q} onChange={(q) => set({ q })} />
      </Filters>
      <LoadedList query={query} empty={<Empty command="ferry apps create shop">{params.q ? 'No app has this name.' : 'No apps yet. An app is a product, packaged as a directory of TOML files.'}</Empty>}>
        {(rows) => (
          <Table
            label="Apps"
            rows={rows}
            id={(it) => it.id}
            onActivate={(it) => go(org.to.app(it.id))}
            columns={[
              { key: 'name', head: 'App', plain: true, cell: (it) => <span><To to={org.to.app(it.id)}><b><bdi>{it.display_name || it.name}</bdi></b></To> {it.display_name && it.display_name !== it.name && <bdi className="muted">{it.name}</bdi>}</span> },
              { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="app" title={it.status_description} /> },
              { key: 'what', head: 'About', cell: (it) => <span className="muted" dir="auto">{it.description}</span> },
              { key: 'at', head: 'Changed', fit: true, cell: (it) => <Time at={it.updated_at} /> },
            ]}
          />
        )}
      </LoadedList>
      <Confirm open={making} onClose={() => setMaking(false)} title="New app" label="Create" reason={name.trim() === '' ? 'Give it a name.' : undefined} perform={(key) => post<App>('/v1/apps', { org: org.id, body: { name: name.trim() }, idempotency: key })} then={(made) => go(org.to.app((made as App).id))}>
        <p>Then sync its files with the CLI: apps are not edited here.</p>
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" spellCheck={false} autoFocus />
      </Confirm>
    </Page>
  )
}
