import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { appComponents, componentConfigs } from '../../api/queries'
import type { Build, Component } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Check } from '../../base/Field'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { words } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Section } from '../../parts/Page'
import { useGo } from '../../parts/To'
import { useApp } from './AppFrame'
import styles from './Apps.module.css'

export function AppComponents() {
  const org = useOrg()
  const go = useGo()
  const app = useApp()
  const operator = useNeeds('operator')
  const query = useInfiniteQuery(appComponents(org.id, app.id))
  const [open, setOpen] = useState<Component>()
  const [build, setBuild] = useState<Component>()
  const [anew, setAnew] = useState(false)
  return (
    <>
      <LoadedList query={query} empty={<Empty command={`ferry apps sync . --app ${app.name}`}>The app has no components yet.</Empty>}>
        {(rows) => (
          <Table
            label="Components"
            rows={rows}
            id={(it) => it.id}
            active={open?.id}
            columns={[
              { key: 'name', head: 'Component', plain: true, cell: (it) => <b><bdi>{it.name}</bdi></b> },
              { key: 'type', head: 'Kind', cell: (it) => <span className="muted">{words(it.type)}</span> },
              { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="app" title={it.status_description} /> },
              { key: 'needs', head: 'Needs', cell: (it) => <bdi className="muted">{it.dependencies?.map((id) => rows.find((other) => other.id === id)?.name ?? id).join(', ')}</bdi> },
              { key: 'versions', head: 'Configs', fit: true, num: true, cell: (it) => it.config_versions ?? '' },
              { key: 'open', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (it) => <span className="row"><Button small aria-expanded={open?.id === it.id} onClick={() => setOpen(open?.id === it.id ? undefined : it)}>Config</Button><Button small reason={operator} onClick={() => setBuild(it)}>Build</Button></span> },
            ]}
          />
        )}
      </LoadedList>
      {open && <Configs key={open.id} component={open} />}
      {build && (
        <Confirm open onClose={() => setBuild(undefined)} title={`Build ${build.name}`} label="Build" reason={operator} perform={(key) => post<Build>(path`/v1/components/${build.id}/builds`, { org: org.id, body: anew ? { anew: true } : {}, idempotency: key })} then={(made) => go(org.to.build((made as Build).id))}>
          <Check label="Build it even if nothing changed" checked={anew} onChange={(event) => setAnew(event.target.checked)} />
        </Confirm>
      )}
    </>
  )
}

function Configs({ component }: { component: Component }) {
  const org = useOrg()
  const query = useInfiniteQuery(componentConfigs(org.id, component.id))
  return (
    <Section title={<>Config of <bdi>{component.name}</bdi></>}>
      <LoadedList query={query} empty={<p className="muted">No config.</p>}>
        {(rows) =>
          rows.map((it, at) => (
            <details key={it.id} open={at === 0}>
              <summary>
                Config {it.version}
                {it.app_config_version !== undefined && `, since version ${it.app_config_version}`} <span className="muted"><Time at={it.created_at} /></span>
              </summary>
              <pre className={styles.pre} tabIndex={0}>{JSON.stringify(it.terraform_module ?? it.helm ?? it.kubernetes_manifest ?? it.docker_build ?? it.external_image ?? it.job ?? it.pulumi ?? it, null, 2)}</pre>
            </details>
          ))
        }
      </LoadedList>
    </Section>
  )
}
