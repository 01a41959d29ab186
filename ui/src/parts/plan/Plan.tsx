import { useMemo, useState } from 'react'
import type { PlanOutput, PlanResource, PlanView } from '../../api/types'
import { Button } from '../../base/Button'
import { Mark } from '../../base/Chip'
import { Note } from '../../base/Failure'
import { Icon } from '../../base/Icon'
import { plural, shortDigest } from '../../lib/format'
import { dataLossText, signs } from '../words'
import { Attributes } from './Attributes'
import { Resource } from './Resource'
import styles from './Plan.module.css'

const STEP = 100

/** What a step would change: the dangerous first, everything folded, nothing hidden without a word. */
export function Plan({ plan, untitled = false }: { plan: PlanView; untitled?: boolean }) {
  const [only, setOnly] = useState('')
  const [text, setText] = useState('')
  const shown = useMemo(() => {
    const word = text.trim().toLowerCase()
    return plan.resources.filter((it) => (only === '' || group(it) === only) && (word === '' || it.address.toLowerCase().includes(word)))
  }, [plan.resources, only, text])

  return (
    <div className={styles.plan}>
      {(!untitled || plan.terraform_version) && (<div className={styles.head}>
        {!untitled && (
          <h2 className={styles.title}>
            <bdi>{plan.title}</bdi>
          </h2>
        )}
        {plan.digest && !untitled && (
          <span className="muted small">
            plan <code title={plan.digest}>{shortDigest(plan.digest)}</code>
          </span>
        )}
        {plan.terraform_version && <span className="muted small">Terraform {plan.terraform_version}</span>}
      </div>)}

      {plan.data_loss > 0 && (
        <Note role="bad">
          <p className={styles.loss}>
            <Icon name="bang" /> {dataLossText(plan.data_loss)}.
          </p>
        </Note>
      )}
      {plan.ask && (
        <Note role="odd">
          <p dir="auto">{plan.ask}</p>
        </Note>
      )}
      {plan.notes?.map((it) => (
        <Note key={it} role="warn">
          <p dir="auto">{it}</p>
        </Note>
      ))}
      <Policies plan={plan} />

      {plan.noop || (plan.resources.length === 0 && plan.outputs.length === 0) ? (
        <p className={styles.nothing}>
          <Icon name="equal" /> Nothing changes.
        </p>
      ) : (
        <>
          <Counts plan={plan} only={only} setOnly={setOnly} />
          {plan.resources.length > 12 && <input className={styles.filter} type="search" aria-label="Filter resources" placeholder="Filter by address" value={text} onChange={(event) => setText(event.target.value)} />}
          <Tree resources={shown} few={plan.resources.length <= 8} />
          {shown.length === 0 && plan.resources.length > 0 && <p className="muted">No resource matches.</p>}
          {(plan.omitted ?? 0) > 0 && <p className={styles.cut}>{plural(plan.omitted ?? 0, 'more resource')} not listed. The command below shows them all.</p>}
          <Outputs outputs={plan.outputs} />
        </>
      )}
      {plan.drift.length > 0 && (
        <details className={styles.drift}>
          <summary>Changed outside of Ferry: {plural(plan.drift.length, 'resource')}</summary>
          <p className="muted small">The plan starts from these values. Approving does not approve them.</p>
          <Tree resources={plan.drift} few={false} />
        </details>
      )}
    </div>
  )
}

/** Which count a resource belongs to. */
function group(it: PlanResource): string {
  return it.action
}

function Counts({ plan, only, setOnly }: { plan: PlanView; only: string; setOnly: (value: string) => void }) {
  const actions = useMemo(() => [...new Set(plan.resources.map(group))], [plan.resources])
  const words: Record<string, string> = { destroy: 'to destroy', replace: 'to replace', update: 'to update', create: 'to create', import: 'to import', move: 'to move', forget: 'to forget', read: 'to read' }
  if (actions.length < 2) {
    return (
      <p className={styles.summary}>
        {signs(plan.changes).map((it) => (
          <span key={it.text} className={styles[it.role]}>
            {it.words}
          </span>
        ))}
      </p>
    )
  }
  return (
    <div className={styles.counts} role="group" aria-label="Show only">
      {actions.map((action) => {
        const n = plan.resources.filter((it) => group(it) === action).length
        return (
          <Button key={action} small kind={only === action ? 'primary' : 'plain'} aria-pressed={only === action} onClick={() => setOnly(only === action ? '' : action)}>
            {n} {words[action] ?? action}
          </Button>
        )
      })}
      {(plan.changes.outputs ?? 0) > 0 && <span className="muted small">{plural(plan.changes.outputs, 'output')}</span>}
    </div>
  )
}

/** Resources by module; the root first. Long lists come in pieces. */
export function Tree({ resources, few }: { resources: PlanResource[]; few: boolean }) {
  const modules = useMemo(() => {
    const byModule = new Map<string, PlanResource[]>()
    for (const it of resources) byModule.set(it.module ?? '', [...(byModule.get(it.module ?? '') ?? []), it])
    return [...byModule]
  }, [resources])
  return (
    <div className={styles.tree}>
      {modules.map(([name, list]) => (name === '' || modules.length === 1 ? <Rows key={name} list={list} module={name} few={few} /> : <Module key={name} name={name} list={list} few={few} />))}
    </div>
  )
}

function Module({ name, list, few }: { name: string; list: PlanResource[]; few: boolean }) {
  const grave = list.some((it) => it.action === 'destroy' || it.action === 'replace')
  const [open, setOpen] = useState(few || grave || list.length <= 20)
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)} className={styles.module}>
      <summary>
        <bdi className="mono">{name}</bdi> <span className="muted small">{list.length}</span>
      </summary>
      {open && <Rows list={list} module={name} few={few} />}
    </details>
  )
}

function Rows({ list, module, few }: { list: PlanResource[]; module: string; few: boolean }) {
  const [most, setMost] = useState(STEP)
  return (
    <>
      {list.slice(0, most).map((it) => (
        <Resource key={`${it.address} ${it.deposed ?? ''} ${it.action}`} resource={it} module={module} open={few && (it.attributes?.length ?? 0) <= 12} />
      ))}
      {list.length > most && (
        <p className={styles.cut}>
          <Button small onClick={() => setMost(most + 500)}>
            Show {Math.min(500, list.length - most)} of {list.length - most} more
          </Button>
        </p>
      )}
    </>
  )
}

function Policies({ plan }: { plan: PlanView }) {
  if (!plan.policies && !plan.verdicts?.length) return null
  const asked = plan.policies?.asked ?? 0
  return (
    <div className={styles.policies}>
      <p className="row">
        <Icon name="shield" /> {plural(asked, 'policy', 'policies')} checked{plan.verdicts?.length ? ':' : ', none objects.'}
      </p>
      <ul className={styles.verdicts}>
        {plan.verdicts?.map((it) => (
          <li key={`${it.policy} ${it.message} ${it.address ?? ''}`}>
            <Mark role={it.severity === 'deny' ? 'bad' : 'warn'} icon={it.severity === 'deny' ? 'denied' : 'bang'}>
              {it.severity === 'deny' ? 'denies' : 'warns'}
            </Mark>{' '}
            <bdi>{it.message}</bdi>{' '}
            <span className="muted small">
              <bdi>{it.policy}</bdi>
              {it.address && (
                <>
                  {' '}
                  at <bdi>{it.address}</bdi>
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </div>
  )
}

function Outputs({ outputs }: { outputs: PlanOutput[] }) {
  if (outputs.length === 0) return null
  return (
    <details className={styles.module} open={outputs.length <= 6}>
      <summary>
        Outputs <span className="muted small">{outputs.length}</span>
      </summary>
      {outputs.map((it) => (
        <div key={it.name} className={styles.output}>
          <bdi className="mono">{it.name}</bdi> <span className="muted small">{it.action}</span>
          <Attributes list={it.values ?? []} omitted={it.values_omitted ?? 0} />
        </div>
      ))}
    </details>
  )
}
