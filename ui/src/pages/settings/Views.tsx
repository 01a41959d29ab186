import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, remove } from '../../api/client'
import { views } from '../../api/queries'
import type { SavedView } from '../../api/types'
import { Button } from '../../base/Button'
import { Empty } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { Confirm } from '../../parts/act'
import { Loaded } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { To } from '../../parts/To'

/** Filters of the fleet that somebody has saved. */
export function Views() {
  const org = useOrg()
  const query = useQuery(views(org.id))
  const [gone, setGone] = useState<SavedView>()
  return (
    <>
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty action={<To to={org.to.fleet}>Go to the fleet</To>}>No saved views. Filter the fleet, then save the filter there.</Empty>
          ) : (
            <Table
              label="Saved views"
              rows={rows}
              id={(it) => it.id}
              columns={[
                { key: 'name', head: 'View', plain: true, cell: (it) => <To to={`${org.to.fleet}?${it.query}`}><bdi>{it.name}</bdi></To> },
                { key: 'query', head: 'Filter', cell: (it) => <bdi className="mono">{it.query}</bdi> },
                { key: 'who', head: 'By', fit: true, cell: (it) => <bdi>{it.created_by}</bdi> },
                { key: 'shared', head: 'Seen by', fit: true, cell: (it) => (it.shared ? 'everybody' : 'you') },
                { key: 'at', head: 'Saved', fit: true, cell: (it) => <Time at={it.created_at} /> },
                { key: 'remove', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <Button small reason={it.mine ? undefined : 'Somebody else has saved it.'} onClick={() => setGone(it)}>Delete</Button> },
              ]}
            />
          )
        }
      </Loaded>
      <Confirm open={gone !== undefined} onClose={() => setGone(undefined)} title={<>Delete the view <bdi>{gone?.name}</bdi>?</>} label="Delete" danger perform={() => remove(path`/v1/views/${gone?.id ?? ''}`, { org: org.id })}>
        {gone?.shared && <p>Everybody of the org loses it.</p>}
      </Confirm>
    </>
  )
}
