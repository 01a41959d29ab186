import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { audit } from '../api/queries'
import type { AuditEntry } from '../api/types'
import { Button } from '../base/Button'
import { Empty, Failure } from '../base/Failure'
import { Icon } from '../base/Icon'
import { Skeleton } from '../base/Skeleton'
import { Table } from '../base/Table'
import { Time } from '../base/Time'
import { Filters, Pick, Search } from './filters/Filters'
import { failureInfo, More } from './Loaded'
import { useOrg } from './org'
import { To, useParamsState } from './To'
import type { Paths } from './paths'
import styles from './AuditTable.module.css'

const families = ['workflow', 'job', 'install', 'app', 'config', 'build', 'runner', 'health', 'person', 'member', 'invite', 'token', 'source', 'org', 'component', 'action']

function place(to: Paths, it: AuditEntry): string | undefined {
  if (it.workflow_id) return to.run(it.workflow_id)
  if (it.subject_type === 'job') return to.job(it.subject_id)
  if (it.subject_type === 'workflow') return to.run(it.subject_id)
  if (it.subject_type === 'runner') return to.runner(it.subject_id)
  if (it.subject_type === 'app') return to.app(it.subject_id)
  if (it.subject_type === 'build') return to.build(it.subject_id)
  if (it.subject_type === 'install') return to.install(it.subject_id)
  return it.install_id ? to.install(it.install_id) : undefined
}

/** Events with names in place of ids, the newest first. */
export function AuditTable({ install }: { install?: string }) {
  const org = useOrg()
  const [params, set] = useParamsState()
  const [open, setOpen] = useState('')
  const filter = { install: install ?? params.install, kind: params.kind, actor: params.actor, q: params.q, from: params.from, to: params.to }
  const query = useInfiniteQuery({ ...audit(org.id, filter), placeholderData: keepPreviousData })
  const rows = query.data?.pages.flatMap((it) => it.entries) ?? []
  const filtered = Boolean(params.kind || params.actor || params.q || (!install && params.install))
  const csv = new URLSearchParams({ org_id: org.id, format: 'csv', ...Object.fromEntries(Object.entries(filter).filter((it): it is [string, string] => Boolean(it[1]))) })
  return (
    <>
      <div className={styles.bar}>
        <Filters>
          <Search label="Search" value={params.q} onChange={(q) => set({ q })} />
          <Pick label="Kind" value={params.kind} options={families.map((it) => ({ value: it, name: it }))} onChange={(kind) => set({ kind })} />
          <Search label="Who" value={params.actor} onChange={(actor) => set({ actor })} />
          {!install && <Search label="Install" value={params.install} onChange={(value) => set({ install: value })} />}
        </Filters>
        <a href={`/v1/audit?${csv}`} download="audit.csv">
          <Icon name="download" size={14} /> CSV
        </a>
      </div>
      {query.isError && <Failure error={failureInfo(query.error)} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton rows={10} />}
      {query.data && rows.length === 0 && (
        <Empty action={filtered ? <Button onClick={() => set({ kind: undefined, actor: undefined, q: undefined, install: undefined })}>Clear the filter</Button> : undefined}>{filtered ? 'No event matches this filter.' : 'Nothing has happened yet.'}</Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Events"
          rows={rows}
          id={(it) => it.id}
          columns={[
            { key: 'at', head: 'When', fit: true, cell: (it) => <Time at={it.time} /> },
            { key: 'who', head: 'Who', fit: true, cell: (it) => <bdi>{it.who}</bdi> },
            {
              key: 'what',
              head: 'What',
              plain: true,
              cell: (it) => {
                const to = place(org.to, it)
                return (
                  <span>
                    {to ? (
                      <To to={to} className={styles.text ?? ''} dir="auto">
                        {it.text}
                      </To>
                    ) : (
                      <span dir="auto">{it.text}</span>
                    )}
                    {open === it.id && <pre className={styles.data} tabIndex={0}>{JSON.stringify(it.data, null, 2)}</pre>}
                  </span>
                )
              },
            },
            { key: 'kind', head: 'Kind', fit: true, cell: (it) => <code className="muted">{it.kind}</code> },
            { key: 'more', head: <span className="visually-hidden">Details</span>, fit: true, cell: (it) => <Button small kind="quiet" aria-expanded={open === it.id} aria-label={`Details of ${it.kind}`} onClick={() => setOpen(open === it.id ? '' : it.id)}>{open === it.id ? 'Hide' : 'Data'}</Button> },
          ]}
        />
      )}
      <More query={query} />
    </>
  )
}
