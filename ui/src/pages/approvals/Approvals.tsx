import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { approvals, plan as planQuery } from '../../api/queries'
import type { ApprovalItem } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Skeleton } from '../../base/Skeleton'
import { Failure } from '../../base/Failure'
import { Time } from '../../base/Time'
import { count, plural, shortDigest, words } from '../../lib/format'
import { Answer } from '../../parts/approve/Answer'
import { Changes } from '../../parts/Changes'
import { Filters, Pick, Search } from '../../parts/filters/Filters'
import { failureInfo, Loaded, More } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { Plan } from '../../parts/plan/Plan'
import { useShortcuts } from '../../parts/shortcuts'
import { To, useGo, useParamsState } from '../../parts/To'
import { Together } from './Together'
import styles from './Approvals.module.css'

/** Plans with the same contents stand in one row. */
export interface Group {
  key: string
  items: ApprovalItem[]
  first: ApprovalItem
}

export function grouped(items: ApprovalItem[]): Group[] {
  const groups = new Map<string, ApprovalItem[]>()
  for (const it of items) {
    // A hash of nothing says nothing about equality.
    const key = it.contents ? `${it.app_id} ${it.title} ${it.contents}` : it.step_id
    groups.set(key, [...(groups.get(key) ?? []), it])
  }
  return [...groups].flatMap(([key, list]) => (list[0] ? [{ key, items: list, first: list[0] }] : []))
}

/** Which plans wait for a person? */
export function Approvals() {
  const org = useOrg()
  const go = useGo()
  const [params, set] = useParamsState()
  const answered = params.answered === 'true'
  const filtered = Boolean(params.app || params.labels)
  const query = useInfiniteQuery({ ...approvals(org.id, { app: params.app, labels: params.labels, answered: answered || undefined }), placeholderData: keepPreviousData })
  const [together, setTogether] = useState<Group>()
  const first = query.data?.pages[0]
  const items = query.data?.pages.flatMap((it) => it.items) ?? []
  const groups = answered ? items.map((it) => ({ key: it.step_id, items: [it], first: it })) : grouped(items)
  const selected = groups.find((it) => it.items.some((item) => item.step_id === params.step)) ?? groups[0]
  const apps = [...new Map(items.map((it) => [it.app_id, it.app_name]))]

  const move = (by: number) => {
    const at = groups.findIndex((it) => it === selected)
    const next = groups[at + by]
    if (next) {
      set({ step: next.first.step_id })
      document.getElementById(`approval-${next.key}`)?.scrollIntoView({ block: 'nearest' })
    }
  }
  useShortcuts([
    { keys: 'j', does: 'Next plan', run: () => move(1) },
    { keys: 'k', does: 'Previous plan', run: () => move(-1) },
    { keys: 'Enter', does: 'Open the run of the plan', run: () => selected && go(org.to.run(selected.first.workflow_id, selected.first.step_id)) },
  ])

  return (
    <Page title="Approvals" command={answered ? 'ferry approvals --answered' : 'ferry approvals'} chips={first && <span className="muted">{answered ? `${count(first.total)} answered` : first.total === 1 ? '1 waits' : `${count(first.total)} wait`}</span>}>
      <Filters>
        {(apps.length > 1 || params.app) && <Pick label="App" value={params.app} options={apps.map(([value, name]) => ({ value, name }))} onChange={(app) => set({ app })} />}
        <Search label="Labels: env=prod" value={params.labels} onChange={(labels) => set({ labels })} />
        <Button small kind={answered ? 'primary' : 'plain'} aria-pressed={answered} onClick={() => set({ answered: answered ? undefined : 'true', step: undefined })}>
          Answered
        </Button>
      </Filters>
      {query.isError && <Failure error={failureInfo(query.error)} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton />}
      {first && groups.length === 0 && (
        <Empty action={filtered ? <Button onClick={() => set({ app: undefined, labels: undefined })}>Clear the filter</Button> : undefined}>
          {filtered ? 'No plan matches this filter.' : answered ? 'No plan was answered yet.' : 'No plan waits for a person.'}
        </Empty>
      )}
      {groups.length > 0 && (
        <div className={styles.split}>
          <div className={styles.list}>
            <ul aria-label="Plans">
              {groups.map((it) => (
                <Row key={it.key} group={it} selected={it === selected} answered={answered} onSelect={() => set({ step: it.first.step_id })} />
              ))}
            </ul>
            <More query={query} />
          </div>
          {selected && <Detail key={selected.first.step_id} group={selected} answered={answered} onTogether={() => setTogether(selected)} />}
        </div>
      )}
      {together && <Together group={together} current={groups.find((it) => it.key === together.key)} onClose={() => setTogether(undefined)} />}
    </Page>
  )
}

function Row({ group, selected, answered, onSelect }: { group: Group; selected: boolean; answered: boolean; onSelect: () => void }) {
  const it = group.first
  return (
    <li>
      <button type="button" id={`approval-${group.key}`} className={selected ? `${styles.row} ${styles.selected}` : styles.row} aria-current={selected || undefined} onClick={onSelect}>
        <span className={styles.what}>
          <b>
            <bdi>{it.install_name}</bdi>
            {group.items.length > 1 && ` +${group.items.length - 1}`}
          </b>{' '}
          <bdi>{it.title}</bdi>
        </span>
        <span className={styles.when}>
          <Time at={it.asked_at} />
        </span>
        <span className={styles.line}>
          <Changes changes={it.changes} loss={it.data_loss} warned={it.policies?.warned} />
          {answered && it.answer && <Chip status={it.answer === 'approve' ? 'approved' : 'denied'} />}
          {!answered && it.expires_at && (
            <span className="muted small">
              expires <Time at={it.expires_at} />
            </span>
          )}
        </span>
      </button>
    </li>
  )
}

function Detail({ group, answered, onTogether }: { group: Group; answered: boolean; onTogether: () => void }) {
  const org = useOrg()
  const it = group.first
  const query = useQuery(planQuery(org.id, it.step_id))
  return (
    <section className={styles.detail} aria-label={`Plan of ${it.install_name}`}>
      <p className="row">
        <To to={org.to.install(it.install_id)}>
          <bdi>{it.install_name}</bdi>
        </To>
        <span className="muted">/</span>
        <To to={org.to.run(it.workflow_id, it.step_id)}>{words(it.workflow_type)}</To>
        <span className="muted small">
          <bdi>{it.app_name}</bdi> {shortDigest(it.digest)}
        </span>
      </p>
      {answered && it.answer && (
        <p>
          {words(it.answer)} by <bdi>{it.answered_by}</bdi> <Time at={it.answered_at} />
          {it.note && (
            <>
              : <bdi>{it.note}</bdi>
            </>
          )}
        </p>
      )}
      {group.items.length > 1 && (
        <div className={styles.together}>
          <span>
            The same changes wait in {plural(group.items.length, 'install')}: <bdi>{group.items.slice(0, 6).map((item) => item.install_name).join(', ')}</bdi>
            {group.items.length > 6 && ` and ${group.items.length - 6} more`}.
          </span>
          <Button small onClick={onTogether}>
            Approve all {group.items.length}
          </Button>
        </div>
      )}
      <Loaded query={query}>
        {(plan) => (
          <>
            <Plan plan={plan} />
            {!answered && <Answer plan={plan} installName={it.install_name} />}
          </>
        )}
      </Loaded>
    </section>
  )
}
