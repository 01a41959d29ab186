import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, send } from '../../api/client'
import { inputConfig, inputs, inputVersions } from '../../api/queries'
import type { AppInputConfig, InstallInputs } from '../../api/types'
import { Button } from '../../base/Button'
import { Empty, Failure } from '../../base/Failure'
import { Check } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { useAct } from '../../parts/act'
import { InputFields, shownInputs } from '../../parts/InputFields'
import { failureInfo, Loaded, LoadedList } from '../../parts/Loaded'
import { cannot, useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { To, useGo } from '../../parts/To'
import { useInstall } from './use-install'
import styles from './Install.module.css'

/** What the app asks of this install. Changing an input deploys what reads it. */
export function Inputs() {
  const org = useOrg()
  const { install } = useInstall()
  const config = useQuery(inputConfig(org.id, install.app_id))
  const current = useQuery(inputs(org.id, install.id))
  return (
    <>
      <Loaded query={config} missing={<Empty>The app has no inputs.</Empty>}>
        {(found) =>
          shownInputs(found).length === 0 ? (
            <Empty>The app has no inputs.</Empty>
          ) : (
            <Loaded query={current} missing={<Form config={found} current={undefined} />}>
              {(set) => <Form key={set.version} config={found} current={set} />}
            </Loaded>
          )
        }
      </Loaded>
      <Versions />
      <CommandLine text={`ferry installs inputs ${install.name}`} />
    </>
  )
}

function Form({ config, current }: { config: AppInputConfig; current: InstallInputs | undefined }) {
  const org = useOrg()
  const go = useGo()
  const act = useAct()
  const { install, can, undeployed_inputs: undeployed } = useInstall()
  const [values, setValues] = useState<Record<string, string>>({})
  const [noDeploy, setNoDeploy] = useState(false)
  const shown = { ...current?.values, ...current?.redacted_values }
  const changed = Object.fromEntries(Object.entries(values).filter(([name, value]) => shown[name] !== value))
  const n = Object.keys(changed).length
  const save = async () => {
    const answer = await act.run((key) => send<InstallInputs>('PATCH', path`/v1/installs/${install.id}/inputs`, { org: org.id, body: { inputs: changed, ...(noDeploy ? { no_deploy: true } : {}) }, idempotency: key }), 'Inputs saved')
    if (!answer) return
    setValues({})
    const run = answer.workflow ?? answer.data?.workflow_id
    if (run && !noDeploy) go(org.to.run(run))
  }
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (n > 0) void save()
      }}
    >
      {(undeployed?.length ?? 0) > 0 && <p className="muted">Set but not deployed: <bdi>{undeployed?.join(', ')}</bdi>.</p>}
      <InputFields config={config} values={values} current={shown} onChange={setValues} />
      <Check label="Only save" hint="Without a deploy. What reads the inputs keeps the old values until the next one." checked={noDeploy} onChange={(event) => setNoDeploy(event.target.checked)} />
      {act.error && <Failure error={failureInfo(act.error)} />}
      <div className="row">
        <Button type="submit" kind="primary" busy={act.busy} reason={cannot(can, 'inputs') ?? (n === 0 ? 'Nothing is changed.' : undefined)}>
          {noDeploy ? 'Save' : 'Save and deploy'} {n > 0 && `${n} ${n === 1 ? 'input' : 'inputs'}`}
        </Button>
        {n > 0 && <Button onClick={() => setValues({})}>Undo</Button>}
      </div>
    </form>
  )
}

function Versions() {
  const org = useOrg()
  const { install } = useInstall()
  const query = useInfiniteQuery(inputVersions(org.id, install.id))
  return (
    <Section title="Earlier values">
      <LoadedList query={query} empty={<p className="muted">No values were set yet.</p>}>
        {(rows) => (
          <Table
            label="Versions of inputs"
            rows={rows}
            id={(it) => it.id}
            columns={[
              { key: 'version', head: 'Version', fit: true, num: true, cell: (it) => it.version },
              { key: 'values', head: 'Changed', plain: true, cell: (it) => <bdi className="mono">{differences(it, rows[rows.indexOf(it) + 1])}</bdi> },
              { key: 'run', head: 'Run', fit: true, cell: (it) => it.workflow_id && <To to={org.to.run(it.workflow_id)}>run</To> },
              { key: 'at', head: 'Set', fit: true, cell: (it) => <Time at={it.created_at} /> },
            ]}
          />
        )}
      </LoadedList>
    </Section>
  )
}

/** Names and values that differ from the version before. */
function differences(now: InstallInputs, before: InstallInputs | undefined): string {
  const mine = { ...now.values, ...now.redacted_values }
  const old = { ...before?.values, ...before?.redacted_values }
  const names = [...new Set([...Object.keys(mine), ...Object.keys(old)])].filter((name) => mine[name] !== old[name]).sort()
  const text = names.map((name) => `${name}=${mine[name] ?? '(removed)'}`).join(', ')
  return text.length > 400 ? `${text.slice(0, 400)}…` : text || 'hidden values'
}
