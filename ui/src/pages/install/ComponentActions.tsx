import { useState } from 'react'
import { path, post, send } from '../../api/client'
import type { ComponentRow, CreateWorkflow, InstallOverview } from '../../api/types'
import { Check, TextField } from '../../base/Field'
import { Menu } from '../../base/Menu'
import { Confirm } from '../../parts/act'
import { cannot, useOrg } from '../../parts/org'
import { useGo } from '../../parts/To'
import { start, startedRun } from './use-install'

type Ask = 'deploy' | 'drift' | 'reconcile' | 'toggle' | 'teardown' | 'check'

/** What can be done to one component of an install. */
export function ComponentActions({ data, row, label = 'Manage' }: { data: InstallOverview; row: ComponentRow; label?: string }) {
  const org = useOrg()
  const go = useGo()
  const [ask, setAsk] = useState<Ask>()
  const [dependents, setDependents] = useState(false)
  const [planOnly, setPlanOnly] = useState(false)
  const [force, setForce] = useState(false)
  const [role, setRole] = useState('')
  const install = data.install
  const { can } = data
  const close = () => {
    setAsk(undefined)
    setDependents(false)
    setPlanOnly(false)
    setForce(false)
  }
  const follow = (result: unknown) => {
    const id = startedRun(result)
    if (id) go(org.to.run(id))
  }
  const common = { ...(planOnly ? { plan_only: true } : {}), ...(role.trim() ? { role: role.trim() } : {}) }
  const run = (body: CreateWorkflow) => (key: string) => start(org.id, install.id, { component: row.name, ...common, ...body }, key)
  const needed = row.needed_by ?? []
  const there = row.status !== 'pending' && row.status !== 'inactive'
  const notThere = there ? undefined : 'It is not deployed.'
  const on = row.disabled !== true

  const planCheck = <Check label="Plan only" hint="Show what would change; apply nothing." checked={planOnly} onChange={(event) => setPlanOnly(event.target.checked)} />
  return (
    <>
      <Menu
        small
        label={label}
        name={`${label} ${row.name}`}
        items={[
          { key: 'deploy', label: 'Deploy', reason: cannot(can, 'deploy') ?? (row.retired ? 'The app no longer has it.' : on ? undefined : 'It is switched off.'), onSelect: () => setAsk('deploy') },
          { key: 'drift', label: 'Check for drift', reason: cannot(can, 'drift') ?? notThere, onSelect: () => setAsk('drift') },
          { key: 'reconcile', label: 'Reconcile drift', note: 'deploys again what was deployed', reason: cannot(can, 'drift') ?? notThere, onSelect: () => setAsk('reconcile') },
          ...(row.toggleable ? [{ key: 'toggle', label: on ? 'Switch off' : 'Switch on', danger: on, reason: cannot(can, 'toggle'), onSelect: () => setAsk('toggle') }] : []),
          { key: 'teardown', label: 'Tear down', danger: true, reason: cannot(can, 'teardown') ?? notThere, onSelect: () => setAsk('teardown') },
        ]}
      />
      <Confirm open={ask === 'deploy'} onClose={close} title={`Deploy ${row.name}`} label={planOnly ? 'Plan' : 'Deploy'} reason={cannot(can, 'deploy')} perform={run({ type: 'manual_deploy', ...(dependents ? { dependents: true } : {}) })} then={follow}>
        {needed.length > 0 && <Check label="Deploy what needs it, too" hint={needed.join(', ')} checked={dependents} onChange={(event) => setDependents(event.target.checked)} />}
        {planCheck}
        <TextField label="Role" hint="Instead of the app's; leave it empty for the usual one." value={role} onChange={(event) => setRole(event.target.value)} autoComplete="off" />
      </Confirm>
      <Confirm open={ask === 'drift'} onClose={close} title={`Check ${row.name} for drift`} label="Check" reason={cannot(can, 'drift')} perform={run({ type: 'drift_run' })} then={follow}>
        <p>Compares it with what was deployed. Nothing is changed.</p>
      </Confirm>
      <Confirm open={ask === 'reconcile'} onClose={close} title={`Reconcile ${row.name}`} label="Reconcile" reason={cannot(can, 'drift')} perform={run({ type: 'manual_deploy', deployed: true })} then={follow}>
        <p>Deploys exactly what was deployed before, so that differences are undone.</p>
        {planCheck}
      </Confirm>
      <Confirm
        open={ask === 'toggle'}
        onClose={close}
        title={`Switch ${row.name} ${on ? 'off' : 'on'}`}
        label={on ? 'Switch off' : 'Switch on'}
        danger={on}
        word={on && there ? install.name : undefined}
        reason={cannot(can, 'toggle')}
        perform={async (key) => {
          const answer = await send<{ workflow_id?: string }>('POST', path`/v1/installs/${install.id}/components/${row.id ?? row.name}/toggle`, { org: org.id, body: { enabled: !on, ...(planOnly ? { plan_only: true } : {}) }, idempotency: key })
          return answer.data ?? true
        }}
        then={follow}
      >
        <p>{on ? 'It is torn down in this install, with the data that it holds, and no deploy brings it back until you switch it on.' : 'It is deployed in this install.'}</p>
        {planCheck}
      </Confirm>
      <Confirm
        open={ask === 'teardown'}
        onClose={close}
        title={`Tear ${row.name} down?`}
        label="Tear down"
        danger
        word={install.name}
        reason={cannot(can, 'teardown')}
        perform={(key) => post(path`/v1/installs/${install.id}/components/${row.id ?? row.name}/teardown`, { org: org.id, body: { ...common, ...(dependents ? { with_dependents: true } : {}), ...(force ? { force: true } : {}) }, idempotency: key })}
        then={follow}
      >
        <p>It is destroyed with the data that it holds.</p>
        {needed.length > 0 && (
          <>
            <p>
              These need it: <bdi>{needed.join(', ')}</bdi>.
            </p>
            <Check label="Tear them down first" checked={dependents} onChange={(event) => setDependents(event.target.checked)} />
            <Check label="Tear it down alone" hint="What needs it may break." checked={force} onChange={(event) => setForce(event.target.checked)} />
          </>
        )}
        {planCheck}
      </Confirm>
    </>
  )
}
