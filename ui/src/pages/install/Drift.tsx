import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { drift, plan } from '../../api/queries'
import type { PartDrift } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty, Note } from '../../base/Failure'
import { Time } from '../../base/Time'
import { Act } from '../../parts/act'
import { Changes } from '../../parts/Changes'
import { Loaded } from '../../parts/Loaded'
import { cannot, useOrg } from '../../parts/org'
import { CommandLine } from '../../parts/Page'
import { Plan } from '../../parts/plan/Plan'
import { To, useGo } from '../../parts/To'
import { checkAll, start, startedRun, useInstall } from './use-install'
import styles from './Install.module.css'

/** The last look at each part: what differs, and when the next look is. */
export function Drift() {
  const org = useOrg()
  const go = useGo()
  const overview = useInstall()
  const { install } = overview
  const query = useQuery(drift(org.id, install.id))
  return (
    <>
      <Loaded query={query}>
        {(data) => {
          const off = cannot(data.can, 'drift')
          return (
            <>
              <div className="row">
                <Act reason={off} perform={(key) => checkAll(org.id, overview, key)}>
                  Check all parts
                </Act>
                <Act reason={off} perform={(key) => start(org.id, install.id, { type: 'drift_run_reprovision_sandbox' }, key)} then={(result) => go(org.to.run(startedRun(result)))}>
                  Check the sandbox
                </Act>
              </div>
              {data.parts.length === 0 && <Empty>Nothing is deployed, so nothing can differ.</Empty>}
              {data.parts.map((part) => (
                <Part key={part.part} part={part} />
              ))}
            </>
          )
        }}
      </Loaded>
      <CommandLine text={`ferry installs drift ${install.name}`} />
    </>
  )
}

function Part({ part }: { part: PartDrift }) {
  const org = useOrg()
  const { install, can } = useInstall()
  const go = useGo()
  const [open, setOpen] = useState(false)
  const query = useQuery({ ...plan(org.id, part.step_id ?? ''), enabled: open && Boolean(part.step_id) })
  const sandbox = part.part === 'sandbox'
  return (
    <section className={styles.column}>
      <div className={styles.head}>
        <div className="row">
          <h2>
            <bdi>{part.part}</bdi>
          </h2>
          <Chip status={part.drift} kind="drift" />
          <Changes changes={part.drift === 'drifted' ? part.changes : undefined} />
          <span className="muted">
            {part.looked_at && (
              <>
                checked{' '}
                {part.workflow_id ? (
                  <To to={org.to.run(part.workflow_id, part.step_id)}>
                    <Time at={part.looked_at} />
                  </To>
                ) : (
                  <Time at={part.looked_at} />
                )}
              </>
            )}
            {part.schedule && (
              <>
                , every <code>{part.schedule}</code> UTC
              </>
            )}
            {part.next_at && (
              <>
                , next <Time at={part.next_at} />
              </>
            )}
          </span>
        </div>
        <div className="row">
          {part.step_id && part.drift === 'drifted' && (
            <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? 'Hide what differs' : 'Show what differs'}
            </Button>
          )}
          {part.drift === 'drifted' && (
            <Act
              small
              reason={cannot(can, 'drift')}
              perform={(key) => start(org.id, install.id, sandbox ? { type: 'reprovision_sandbox', skip_components: true, deployed: true } : { type: 'manual_deploy', component: part.part, deployed: true }, key)}
              then={(result) => go(org.to.run(startedRun(result)))}
            >
              Reconcile
            </Act>
          )}
        </div>
      </div>
      {part.reason && (
        <Note role="neutral">
          <span dir="auto">{part.reason}</span>
        </Note>
      )}
      {open && <Loaded query={query}>{(found) => <Plan plan={found} />}</Loaded>}
    </section>
  )
}
