import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { fleet, type ConfigChange, version, versionDiff, versions } from '../../api/queries'
import type { AppConfig } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip, Mark } from '../../base/Chip'
import { Note } from '../../base/Failure'
import { Time } from '../../base/Time'
import { harmless } from '../../lib/ansi'
import { clip, plural, words } from '../../lib/format'
import { Confirm } from '../../parts/act'
import { Pick } from '../../parts/filters/Filters'
import { Loaded } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Facts, Section } from '../../parts/Page'
import { To, useParamsState } from '../../parts/To'
import { useApp } from './AppFrame'
import styles from './Apps.module.css'

/** What a version holds, and how it differs from another. */
export function Version() {
  const org = useOrg()
  const app = useApp()
  const { version: id = '' } = useParams({ strict: false })
  const query = useQuery(version(org.id, app.id, id))
  return <Loaded query={query}>{(it) => <Shown key={it.id} it={it} />}</Loaded>
}

function Shown({ it }: { it: AppConfig }) {
  const org = useOrg()
  const app = useApp()
  const [params, set] = useParamsState()
  const all = useInfiniteQuery(versions(org.id, app.id))
  const others = (all.data?.pages.flatMap((page) => page.data) ?? []).filter((other) => other.id !== it.id)
  const before = others.find((other) => (other.version ?? 0) < (it.version ?? 0))
  const against = params.against ?? before?.id
  const diff = useQuery({ ...versionDiff(org.id, app.id, it.id, against ?? ''), enabled: against !== undefined })
  const at = useInfiniteQuery({ ...fleet(org.id, { app: app.id, version: String(it.version ?? '') }), enabled: it.version !== undefined })
  const operator = useNeeds('operator')
  const [ask, setAsk] = useState<'build' | 'update'>()
  return (
    <>
      <div className="row">
        <h2>Version {it.version ?? 'draft'}</h2>
        <Chip status={it.status} kind="app" />
        <span className="muted">
          synced <Time at={it.created_at} />
        </span>
        {at.data?.pages[0] && <To to={`${org.to.fleet}?app=${encodeURIComponent(app.id)}&version=${it.version}`}>{plural(at.data.pages[0].matched, 'install')}</To>}
        <Button small reason={operator} onClick={() => setAsk('update')}>
          Deploy to installs
        </Button>
        <Button small reason={operator} onClick={() => setAsk('build')}>
          Build what is missing
        </Button>
      </div>
      {it.status_description && it.status_description !== 'synced' && <Note role="neutral">{it.status_description}</Note>}
      <Section title="Changes" actions={others.length > 0 && <Pick label="Against" value={against} options={others.map((other) => ({ value: other.id, name: `Against ${other.version ?? 'draft'}` }))} onChange={(value) => set({ against: value })} />}>
        {against === undefined ? <p className="muted">It is the first version.</p> : <Loaded query={diff}>{(changes) => (changes.length === 0 ? <p className="muted">They are equal.</p> : <Changes changes={changes} />)}</Loaded>}
      </Section>
      <Section title="Holds">
        <Facts
          facts={[
            ['Components', it.component_config_connections?.map((part) => `${part.component_name} (${words(part.type)})`).join(', ')],
            ['Actions', it.action_workflow_configs?.length],
            ['Inputs', it.input?.inputs?.map((input) => input.name).join(', ')],
            ['Sandbox', it.sandbox && [it.sandbox.type, it.sandbox.public_git_vcs_config?.repo ?? it.sandbox.connected_github_vcs_config?.repo].filter(Boolean).join(' ')],
            ['Runner', it.runner?.app_runner_type],
            ['Stack', it.stack?.type],
            ['Policies', it.policies?.policies?.map((policy) => `${policy.name ?? policy.type}`).join(', ')],
            ['Secrets', it.secrets?.secrets?.map((secret) => secret.name).join(', ')],
            ['Checksum', it.checksum && <code key="c">{it.checksum.slice(0, 12)}</code>],
          ]}
        />
      </Section>
      {it.permissions?.aws_iam_roles && it.permissions.aws_iam_roles.length > 0 && (
        <Section title="Roles">
          {it.permissions.aws_iam_roles.map((role) => (
            <details key={role.id}>
              <summary>
                <bdi>{role.display_name || role.name}</bdi> <span className="muted">{role.type}</span>
              </summary>
              <p className="muted" dir="auto">{role.description}</p>
              <pre className={styles.pre} tabIndex={0}>{JSON.stringify({ policies: role.policies, permissions_boundary: role.permissions_boundary }, null, 2)}</pre>
            </details>
          ))}
        </Section>
      )}
      <Confirm open={ask === 'build'} onClose={() => setAsk(undefined)} title="Build what is missing" label="Build" reason={operator} perform={(key) => post(path`/v1/apps/${app.id}/configs/${it.id}/build`, { org: org.id, idempotency: key })} done="Builds are queued">
        <p>Components whose artifact exists already are not built again.</p>
      </Confirm>
      <Confirm open={ask === 'update'} onClose={() => setAsk(undefined)} title={`Deploy version ${it.version ?? ''} to all installs?`} label="Deploy to all" reason={operator} perform={(key) => post(path`/v1/apps/${app.id}/config/${it.id}/update-installs`, { org: org.id, body: { update_all: true }, idempotency: key })} done="The deploys have begun">
        <p>Every install of {app.name} plans this version. Installs that ask for approvals wait for a person.</p>
      </Confirm>
    </>
  )
}

const marks: Record<string, ['ok' | 'bad' | 'warn', 'plus' | 'minus' | 'tilde']> = { added: ['ok', 'plus'], removed: ['bad', 'minus'], changed: ['warn', 'tilde'] }

function Changes({ changes }: { changes: ConfigChange[] }) {
  return (
    <ul className={styles.changes}>
      {changes.map((it) => {
        const [role, icon] = marks[it.kind] ?? ['warn', 'tilde']
        return (
          <li key={`${it.part} ${it.name ?? ''}`}>
            <details open={(it.fields?.length ?? 0) <= 4}>
              <summary>
                <Mark role={role} icon={icon}>
                  {it.kind}
                </Mark>{' '}
                <span className="muted">{words(it.part)}</span> <bdi>{it.name}</bdi>
              </summary>
              {it.fields?.map((field) => (
                <div key={field.path} className={styles.field}>
                  <bdi className={styles.path}>{field.path}</bdi>
                  {field.old != null && <bdi className={styles.old}>{harmless(clip(field.old, 2000))}</bdi>}
                  {field.new != null && <bdi className={styles.new}>{harmless(clip(field.new, 2000))}</bdi>}
                </div>
              ))}
            </details>
          </li>
        )
      })}
    </ul>
  )
}
