import { useState } from 'react'
import { path, patch, post, remove } from '../../api/client'
import type { InstallOverview } from '../../api/types'
import { Check, SelectField, TextArea, TextField } from '../../base/Field'
import { Menu } from '../../base/Menu'
import { pairs } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { cannot, useOrg } from '../../parts/org'
import { useShortcuts } from '../../parts/shortcuts'
import { useGo } from '../../parts/To'
import { Rollback } from './Rollback'
import { checkAll, hasDrifted, reconcileAll, start, startedRun } from './use-install'
import styles from './Install.module.css'

type Ask = 'deploy' | 'rollback' | 'reprovision' | 'sandbox' | 'teardown' | 'deprovision' | 'deprovision-sandbox' | 'forget' | 'secrets' | 'drift' | 'reconcile' | 'settings' | 'labels' | 'provision'

/** Everything that can be done to an install, by damage: what can't be undone is typed. */
export function InstallActions({ data }: { data: InstallOverview }) {
  const org = useOrg()
  const go = useGo()
  const [ask, setAsk] = useState<Ask>()
  const [planOnly, setPlanOnly] = useState(false)
  const [approveAll, setApproveAll] = useState(false)
  const [goOn, setGoOn] = useState(false)
  const [force, setForce] = useState(false)
  const [role, setRole] = useState('')
  const it = data.install
  const { can } = data
  const close = () => {
    setAsk(undefined)
    setPlanOnly(false)
    setApproveAll(false)
    setGoOn(false)
    setForce(false)
    setRole('')
  }
  const follow = (result: unknown) => {
    const id = startedRun(result)
    if (id) go(org.to.run(id))
  }
  const more = { ...(planOnly ? { plan_only: true } : {}), ...(approveAll ? { approve_all: true } : {}), ...(goOn ? { continue_on_error: true } : {}), ...(role.trim() ? { role: role.trim() } : {}) }
  const run = (type: string, extra: object = {}) => (key: string) => start(org.id, it.id, { type, ...more, ...extra }, key)
  const item = (key: Ask, label: string, name: string, more: { note?: string; danger?: boolean; group?: string } = {}) => ({ key, label, ...more, reason: cannot(can, name), onSelect: () => setAsk(key) })

  useShortcuts([{ keys: 'D', does: 'Deploy this install', run: () => !cannot(can, 'deploy') && setAsk('deploy') }])

  const options = (
    <>
      <Check label="Plan only" hint="Show what would change; apply nothing." checked={planOnly} onChange={(event) => setPlanOnly(event.target.checked)} />
      <Check label="Approve all plans of this run" hint="No plan asks; use it where you know what changes." checked={approveAll} onChange={(event) => setApproveAll(event.target.checked)} />
      <details>
        <summary>More options</summary>
        <div className="stack">
          <TextField label="Role" hint="The role in the customer's account that steps run with, instead of the app's." value={role} onChange={(event) => setRole(event.target.value)} autoComplete="off" />
          <Check label="Go on after a failure" hint="Parts that don't need the failed one go on." checked={goOn} onChange={(event) => setGoOn(event.target.checked)} />
        </div>
      </details>
    </>
  )
  const common = { onClose: close, then: follow }
  return (
    <div className={styles.actions}>
      <Menu
        kind="primary"
        label="Deploy"
        items={[
          item('deploy', 'Deploy all components', 'deploy', { note: 'to the newest version of the app' }),
          item('rollback', 'Roll back', 'rollback', { note: 'to an earlier version' }),
          item('provision', 'Provision', 'provision', { note: 'stack, runner, sandbox, all components' }),
          item('reprovision', 'Reprovision', 'reprovision', { note: 'a new stack version, then all again' }),
          item('sandbox', 'Reprovision the sandbox', 'reprovision'),
          item('secrets', 'Sync secrets', 'secrets'),
        ]}
      />
      <Menu
        label="More"
        items={[
          item('drift', 'Check for drift', 'drift', { note: 'changes nothing' }),
          item('reconcile', 'Reconcile drift', 'drift', { note: 'deploys again what was deployed before' }),
          item('settings', 'Name and approvals', 'settings', { group: 'Settings' }),
          item('labels', 'Labels', 'labels'),
          item('teardown', 'Tear down all components', 'teardown', { danger: true, group: 'Takes away' }),
          item('deprovision-sandbox', 'Deprovision the sandbox', 'deprovision', { danger: true }),
          item('deprovision', 'Deprovision', 'deprovision', { danger: true, note: 'components, then the sandbox' }),
          item('forget', 'Forget', 'forget', { danger: true, note: 'its state, inputs and runner' }),
        ]}
      />
      <Confirm {...common} open={ask === 'deploy'} title={`Deploy ${it.name}`} label={planOnly ? 'Plan' : 'Deploy'} reason={cannot(can, 'deploy')} perform={run('deploy_components')}>
        <p>
          Every component is planned, in the order of what it needs{it.latest_version !== undefined && it.version !== it.latest_version ? `, at version ${it.latest_version}` : ''}. {approveAll ? 'Plans are applied without a question.' : data.approval_option === 'approve-all' ? 'This install asks for no approval.' : 'A plan that changes something waits for an approval.'}
        </p>
        {options}
      </Confirm>
      <Confirm {...common} open={ask === 'provision'} title={`Provision ${it.name}`} label="Provision" reason={cannot(can, 'provision')} perform={run('provision')}>
        <p>Makes a new version of the stack, waits until the customer has applied it and the runner has joined, then deploys the sandbox and all components.</p>
        {options}
      </Confirm>
      <Confirm {...common} open={ask === 'reprovision'} title={`Reprovision ${it.name}`} label="Reprovision" reason={cannot(can, 'reprovision')} perform={run('reprovision')}>
        <p>Makes a new version of the stack, then deploys the sandbox and all components again.</p>
        {options}
      </Confirm>
      <Confirm {...common} open={ask === 'sandbox'} title={`Reprovision the sandbox of ${it.name}`} label="Reprovision the sandbox" reason={cannot(can, 'reprovision')} perform={run('reprovision_sandbox', { skip_components: true })}>
        <p>Only the sandbox is planned and applied. Components stay.</p>
        {options}
      </Confirm>
      <Confirm {...common} open={ask === 'secrets'} title="Sync secrets" label="Sync" reason={cannot(can, 'secrets')} perform={run('sync_secrets')}>
        <p>The runner copies the secrets of the customer's account into the cluster again.</p>
      </Confirm>
      <Confirm onClose={close} then={() => go(org.to.install(it.id, 'drift'))} open={ask === 'drift'} title="Check for drift" label="Check" reason={cannot(can, 'drift')} perform={(key) => checkAll(org.id, data, key)}>
        <p>Compares the sandbox and every deployed component with what was deployed, one run each. Nothing is changed, and no lock is held.</p>
      </Confirm>
      <Confirm onClose={close} then={() => go(org.to.install(it.id, 'drift'))} open={ask === 'reconcile'} title="Reconcile drift" label="Reconcile" reason={cannot(can, 'drift') ?? (hasDrifted(data) ? undefined : 'Nothing has drifted, as far as the last looks know.')} perform={(key) => reconcileAll(org.id, data, key)}>
        <p>Deploys again exactly what was deployed, wherever the last looks found a difference. Plans wait for an approval as usual. Inputs and versions that are not deployed yet stay undeployed.</p>
      </Confirm>
      <Confirm {...common} open={ask === 'teardown'} title={`Tear down all components of ${it.name}?`} label="Tear down" danger word={it.name} reason={cannot(can, 'teardown')} perform={run('teardown_components')}>
        <p>All components are destroyed with the data that they hold. The sandbox stays.</p>
        {options}
      </Confirm>
      <Confirm {...common} open={ask === 'deprovision-sandbox'} title={`Deprovision the sandbox of ${it.name}?`} label="Deprovision the sandbox" danger word={it.name} reason={cannot(can, 'deprovision')} perform={run('deprovision_sandbox')}>
        <p>The sandbox is destroyed: networks, clusters, and what runs on them.</p>
        {options}
      </Confirm>
      <Confirm {...common} open={ask === 'deprovision'} title={`Deprovision ${it.name}?`} label="Deprovision" danger word={it.name} reason={cannot(can, 'deprovision')} perform={run('deprovision')}>
        <p>All components are destroyed in reverse order, then the sandbox, with the data that they hold.</p>
        {options}
      </Confirm>
      <Confirm
        open={ask === 'forget'}
        onClose={close}
        title={`Forget ${it.name}?`}
        label="Forget"
        danger
        word={it.name}
        reason={force ? cannot(can, 'settings') : cannot(can, 'forget')}
        perform={(key) => post(path`/v1/installs/${it.id}/forget`, { org: org.id, body: { force }, idempotency: key })}
        done={`${it.name} is forgotten`}
        then={() => go(org.to.fleet)}
      >
        <p>Removes the install with its state, inputs and runs. Its runner can no longer connect. Jobs, logs and events stay. Nothing in the customer's account is touched.</p>
        {cannot(can, 'forget') && <p className="muted">{cannot(can, 'forget')}</p>}
        <Check label="Forget it anyway" hint="What is deployed stays in the customer's account, and Ferry no longer knows it." checked={force} onChange={(event) => setForce(event.target.checked)} />
      </Confirm>
      {ask === 'rollback' && <Rollback data={data} onClose={close} />}
      {ask === 'settings' && <Settings data={data} onClose={close} />}
      {ask === 'labels' && <Labels data={data} onClose={close} />}
    </div>
  )
}

function Settings({ data, onClose }: { data: InstallOverview; onClose: () => void }) {
  const org = useOrg()
  const [name, setName] = useState(data.install.name)
  const [approvals, setApprovals] = useState(data.approval_option)
  return (
    <Confirm
      open
      onClose={onClose}
      title="Name and approvals"
      label="Save"
      reason={cannot(data.can, 'settings')}
      perform={() => patch(path`/v1/installs/${data.install.id}`, { org: org.id, body: { ...(name !== data.install.name ? { name } : {}), ...(approvals !== data.approval_option ? { approval_option: approvals } : {}) } })}
    >
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} />
      <SelectField label="Approvals" hint="An outcome that is unknown always asks." value={approvals} onChange={(event) => setApprovals(event.target.value)}>
        <option value="prompt">Ask for every plan that changes something</option>
        <option value="approve-all">Approve all plans</option>
      </SelectField>
    </Confirm>
  )
}

function Labels({ data, onClose }: { data: InstallOverview; onClose: () => void }) {
  const org = useOrg()
  const before = data.install.labels ?? {}
  const [text, setText] = useState(pairs(before).map(([key, value]) => `${key}=${value}`).join('\n'))
  const wanted = Object.fromEntries(
    text
      .split('\n')
      .map((it) => it.trim())
      .filter(Boolean)
      .map((it) => {
        const at = it.indexOf('=')
        return at < 0 ? [it, ''] : [it.slice(0, at).trim(), it.slice(at + 1).trim()]
      }),
  ) as Record<string, string>
  const added = Object.fromEntries(Object.entries(wanted).filter(([key, value]) => before[key] !== value))
  const gone = Object.keys(before).filter((key) => !(key in wanted))
  return (
    <Confirm
      open
      onClose={onClose}
      title="Labels"
      label="Save"
      reason={cannot(data.can, 'labels')}
      perform={async (key) => {
        const route = path`/v1/installs/${data.install.id}/labels`
        if (Object.keys(added).length > 0) await post(route, { org: org.id, body: { labels: added }, idempotency: key })
        if (gone.length > 0) await remove(route, { org: org.id, body: { keys: gone } })
        return true
      }}
    >
      <TextArea label="Labels" hint="One key=value a line. The app's default labels come back when you remove the install's own." rows={6} value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
    </Confirm>
  )
}
