import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, send } from '../../api/client'
import { apps, inputConfig, latestVersion } from '../../api/queries'
import type { App, AppInputConfig, Install } from '../../api/types'
import { Button } from '../../base/Button'
import { Empty, Failure } from '../../base/Failure'
import { SelectField, TextField } from '../../base/Field'
import { shellQuote } from '../../lib/format'
import { useAct } from '../../parts/act'
import { InputFields, missingInput } from '../../parts/InputFields'
import { failureInfo, Loaded, LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { PairsField, parsePairs } from '../../parts/PairsField'
import { useGo, useParamsState } from '../../parts/To'
import styles from './Install.module.css'

/** One app for one customer: a form made from the app's inputs. */
export function NewInstall() {
  const org = useOrg()
  const [params, set] = useParamsState()
  const query = useInfiniteQuery(apps(org.id, { limit: 200 }))
  return (
    <Page title="New install" crumbs={[{ to: org.to.fleet, name: 'Fleet' }]}>
      <LoadedList query={query} empty={<Empty command="ferry apps init shop">There is no app yet. Write one, then sync it with ferry apps sync.</Empty>}>
        {(rows) => {
          const app = rows.find((it) => it.id === params.app || it.name === params.app) ?? (rows.length === 1 ? rows[0] : undefined)
          return (
            <div className={styles.form}>
              <SelectField label="App" value={app?.id ?? ''} onChange={(event) => set({ app: event.target.value })}>
                {!app && <option value="">choose</option>}
                {rows.map((it) => (
                  <option key={it.id} value={it.id}>
                    {it.display_name || it.name}
                  </option>
                ))}
              </SelectField>
              {app && <WithInputs key={app.id} app={app} />}
            </div>
          )
        }}
      </LoadedList>
    </Page>
  )
}

function WithInputs({ app }: { app: App }) {
  const org = useOrg()
  const config = useQuery(inputConfig(org.id, app.id))
  const latest = useQuery(latestVersion(org.id, app.id))
  const none: AppInputConfig = { id: '', created_by_id: '', created_at: '', updated_at: '' }
  return (
    <Loaded query={latest} missing={<Empty command={`ferry apps sync . --app ${shellQuote(app.name)}`}>This app has no version yet. Sync it first.</Empty>}>
      {(version) => (
        <Loaded query={config} missing={<Form app={app} config={none} platform={version.runner?.cloud_platform || version.sandbox?.cloud_platform || ''} />}>
          {(inputs) => <Form app={app} config={inputs} platform={version.runner?.cloud_platform || version.sandbox?.cloud_platform || ''} />}
        </Loaded>
      )}
    </Loaded>
  )
}

const clouds = ['local', 'aws', 'azure', 'gcp']

function Form({ app, config, platform }: { app: App; config: AppInputConfig; platform: string }) {
  const org = useOrg()
  const go = useGo()
  const act = useAct()
  const operator = useNeeds('operator')
  const [name, setName] = useState('')
  const [cloud, setCloud] = useState(clouds.includes(platform) ? platform : 'local')
  const [region, setRegion] = useState('')
  const [project, setProject] = useState('')
  const [labels, setLabels] = useState('')
  const [values, setValues] = useState<Record<string, string>>({})
  const { pairs, bad } = parsePairs(labels)
  const missing = missingInput(config, values)
  const reason =
    operator ?? (name.trim() === '' ? 'Give it a name.' : cloud !== 'local' && region.trim() === '' ? 'Say where it runs.' : cloud === 'gcp' && project.trim() === '' ? 'Name the project.' : bad !== undefined ? 'Correct the labels.' : missing ? `${missing.display_name || missing.name} is required.` : undefined)
  const place = cloud === 'aws' ? { aws_account: { region: region.trim() } } : cloud === 'azure' ? { azure_account: { location: region.trim() } } : cloud === 'gcp' ? { gcp_account: { project_id: project.trim(), region: region.trim() } } : {}
  const create = async () => {
    const body = { name: name.trim(), ...place, ...(Object.keys(values).length > 0 ? { inputs: values } : {}), ...(Object.keys(pairs).length > 0 ? { labels: pairs } : {}) }
    const answer = await act.run((key) => send<Install>('POST', path`/v1/apps/${app.id}/installs`, { org: org.id, body, idempotency: key }))
    if (!answer) return
    const run = answer.workflow ?? answer.data.workflow_id
    go(run ? org.to.run(run) : org.to.install(answer.data.id))
  }
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (!reason) void create()
      }}
    >
      <TextField label="Name" hint="Usually the customer's." value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" spellCheck={false} required />
      <SelectField label="Cloud" hint="Where the customer runs it." value={cloud} onChange={(event) => setCloud(event.target.value)}>
        {clouds.map((it) => (
          <option key={it} value={it}>
            {it === 'local' ? 'none: a machine of theirs' : it}
          </option>
        ))}
      </SelectField>
      {cloud === 'gcp' && <TextField label="Project" value={project} onChange={(event) => setProject(event.target.value)} autoComplete="off" />}
      {cloud !== 'local' && <TextField label={cloud === 'azure' ? 'Location' : 'Region'} placeholder={cloud === 'aws' ? 'eu-west-1' : ''} value={region} onChange={(event) => setRegion(event.target.value)} autoComplete="off" />}
      <InputFields config={config} values={values} onChange={setValues} />
      <PairsField label="Labels" hint="One key=value a line, such as env=prod." value={labels} onChange={setLabels} />
      {act.error && <Failure error={failureInfo(act.error)} />}
      <div>
        <Button type="submit" kind="primary" busy={act.busy} reason={reason}>
          Create and provision
        </Button>
      </div>
      <p className="muted small">
        In a terminal: <code>ferry installs create {shellQuote(name || 'NAME')} --app {shellQuote(app.name)}</code>
      </p>
    </form>
  )
}
