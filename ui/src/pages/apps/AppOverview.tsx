import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, patch, remove } from '../../api/client'
import { appActions, appGraph, fleet, latestVersion } from '../../api/queries'
import { Button } from '../../base/Button'
import { Empty } from '../../base/Failure'
import { TextArea, TextField } from '../../base/Field'
import { Time } from '../../base/Time'
import { plural, words } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { Graph } from '../../parts/graph/Graph'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Facts, Section } from '../../parts/Page'
import { To, useGo } from '../../parts/To'
import { useApp } from './AppFrame'

/** What installs get: the newest version, its parts, and who has it. */
export function AppOverview() {
  const org = useOrg()
  const app = useApp()
  const latest = useQuery(latestVersion(org.id, app.id))
  const graph = useQuery(appGraph(org.id, app.id))
  const installs = useInfiniteQuery(fleet(org.id, { app: app.id }))
  const actions = useInfiniteQuery(appActions(org.id, app.id))
  const first = installs.data?.pages[0]
  return (
    <>
      <Loaded query={latest} missing={<Empty command={`ferry apps sync . --app ${app.name}`}>No version yet. Sync the app's files.</Empty>}>
        {(it) => (
          <Facts
            facts={[
              ['Version', <To key="v" to={org.to.version(app.id, it.id)}>{it.version ?? 'draft'}</To>],
              ['Synced', <Time key="t" at={it.created_at} />],
              ['Installs', first && <To key="i" to={`${org.to.fleet}?app=${encodeURIComponent(app.id)}`}>{plural(first.matched, 'install')}</To>],
              ['Components', it.component_ids?.length],
              ['Cloud', [it.runner?.cloud_platform, it.sandbox?.cloud_platform].find((cloud) => cloud && cloud !== 'unknown')],
              ['Source', app.config_repo && <bdi key="r">{[app.config_repo, app.config_directory].filter(Boolean).join(' ')}</bdi>],
              ['About', app.description && <span key="d" dir="auto">{app.description}</span>],
              ['Inputs', it.input?.inputs?.length],
              ['Policies', it.policies?.policies?.map((policy) => policy.name || policy.type).join(', ')],
              ['Secrets', it.secrets?.secrets?.map((secret) => secret.name).join(', ')],
              ['Roles', it.permissions?.aws_iam_roles?.map((role) => role.name).join(', ')],
            ]}
          />
        )}
      </Loaded>
      <Section title="Components and what they need">
        <Loaded query={graph}>{(it) => (it.nodes.length === 0 ? <p className="muted">No components yet.</p> : <Graph graph={it} place={() => org.to.app(app.id, 'components')} />)}</Loaded>
      </Section>
      <Section title="Actions">
        <LoadedList query={actions} empty={<p className="muted">No actions.</p>}>
          {(rows) => (
            <ul>
              {rows.map((it) => (
                <li key={it.id}>
                  <bdi>{it.name}</bdi> <span className="muted">{it.configs?.[0]?.triggers?.map((trigger) => words(trigger.type)).join(', ')}</span>
                </li>
              ))}
            </ul>
          )}
        </LoadedList>
      </Section>
      <Manage />
    </>
  )
}

function Manage() {
  const org = useOrg()
  const app = useApp()
  const go = useGo()
  const operator = useNeeds('operator')
  const admin = useNeeds('admin')
  const [ask, setAsk] = useState<'edit' | 'delete'>()
  const [name, setName] = useState(app.name)
  const [title, setTitle] = useState(app.display_name ?? '')
  const [about, setAbout] = useState(app.description ?? '')
  return (
    <Section title="Manage">
      <div className="row">
        <Button reason={operator} onClick={() => setAsk('edit')}>
          Name and description
        </Button>
        <Button reason={admin ?? operator} onClick={() => setAsk('delete')}>
          Delete
        </Button>
      </div>
      <Confirm open={ask === 'edit'} onClose={() => setAsk(undefined)} title="Name and description" label="Save" reason={operator} perform={() => patch(path`/v1/apps/${app.id}`, { org: org.id, body: { ...(name !== app.name ? { name } : {}), display_name: title, description: about } })}>
        <TextField label="Name" hint="Commands and files use it." value={name} onChange={(event) => setName(event.target.value)} />
        <TextField label="Title" value={title} onChange={(event) => setTitle(event.target.value)} />
        <TextArea label="Description" value={about} onChange={(event) => setAbout(event.target.value)} />
      </Confirm>
      <Confirm open={ask === 'delete'} onClose={() => setAsk(undefined)} title={`Delete ${app.name}?`} label="Delete" danger word={app.name} reason={admin ?? operator} perform={() => remove(path`/v1/apps/${app.id}`, { org: org.id })} done={`${app.name} is deleted`} then={() => go(org.to.apps)}>
        <p>Its versions and builds go with it. An app that has installs can't be deleted.</p>
      </Confirm>
    </Section>
  )
}
