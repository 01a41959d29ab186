import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { deploys, health, rendered } from '../../api/queries'
import type { InstallDeploy } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip, Mark } from '../../base/Chip'
import { Empty, Note } from '../../base/Failure'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { words } from '../../lib/format'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { CommandLine, Facts, Section } from '../../parts/Page'
import { To, useParamsState } from '../../parts/To'
import { Values } from '../../parts/Values'
import { HealthBars } from './HealthBars'
import { ComponentActions } from './ComponentActions'
import { useInstall } from './use-install'
import { WorkspaceStates } from './WorkspaceStates'
import styles from './Install.module.css'

/** Config, outputs, deploys, state versions of one component. */
export function Component() {
  const org = useOrg()
  const data = useInstall()
  const { component: name = '' } = useParams({ strict: false })
  const row = data.components.find((it) => it.name === name) ?? (data.sandbox && (data.sandbox.name === name || name === 'sandbox') ? data.sandbox : undefined)
  if (!row) {
    return (
      <Empty action={<To to={org.to.install(data.install.id, 'components')}>All components</To>}>
        There is no component <bdi>{name}</bdi> in this install.
      </Empty>
    )
  }
  const to = (part: string) => org.to.component(data.install.id, part)
  return (
    <>
      <div className={styles.head}>
        <div className="row">
          <h2>
            <bdi>{row.name}</bdi>
          </h2>
          <Chip status={row.status} kind="component" />
          {row.health && row.health !== 'not-applicable' && <Chip status={row.health} kind="health" />}
          {row.drift && <Chip status={row.drift} kind="drift" />}
          {row.disabled && <Mark role="neutral" icon="dotted">switched off</Mark>}
          {row.retired && <Mark role="warn" icon="bang">no longer in the app</Mark>}
        </div>
        {row !== data.sandbox && <ComponentActions data={data} row={row} />}
      </div>
      {row.drift === 'drifted' && (
        <Note role="warn">
          It differs from what was deployed. <To to={org.to.install(data.install.id, 'drift')}>Show what</To>
        </Note>
      )}
      {row.waiting_workflow_id && (
        <Note role="ask">
          A plan of it waits for an approval. <To to={org.to.run(row.waiting_workflow_id, row.waiting_step_id)}>Review</To>
        </Note>
      )}
      {row.health_reason && row.health !== 'healthy' && (
        <Note role="warn">
          <span dir="auto">{row.health_reason}</span>
        </Note>
      )}
      <Facts
        facts={[
          ['Kind', row.type && words(row.type)],
          ['Version', row.version !== undefined ? `${row.version}${row.next_version !== undefined && row.next_version !== row.version ? `, next ${row.next_version}` : ''}` : 'never deployed'],
          ['Deployed', row.deployed_at && <Time key="at" at={row.deployed_at} />],
          ['Needs', row.depends_on?.length ? <Names key="n" names={row.depends_on} to={to} /> : undefined],
          ['Needed by', row.needed_by?.length ? <Names key="b" names={row.needed_by} to={to} /> : undefined],
        ]}
      />
      <div className={styles.columns}>
        <div className={styles.column}>
          <Deploys component={row.name} />
          {row.workspace_id && (
            <Section title="Terraform state">
              <WorkspaceStates workspace={row.workspace_id} can={data.can} installName={data.install.name} />
            </Section>
          )}
          <Config component={row.name} />
        </div>
        <div className={styles.column}>
          <Section title="Outputs">
            <Values values={row.outputs} empty="No outputs yet." />
          </Section>
          <ComponentHealthBox name={row.name} />
        </div>
      </div>
      <CommandLine text={`ferry components get ${row.name}`} />
    </>
  )
}

function Names({ names, to }: { names: string[]; to: (name: string) => string }) {
  return (
    <span className={styles.names}>
      {names.map((it) => (
        <To key={it} to={to(it)}>
          <bdi>{it}</bdi>
        </To>
      ))}
    </span>
  )
}

function Deploys({ component }: { component: string }) {
  const org = useOrg()
  const data = useInstall()
  const query = useInfiniteQuery(deploys(org.id, data.install.id))
  return (
    <Section title="Deploys">
      <LoadedList query={query} empty={<p className="muted">It was never deployed.</p>}>
        {(rows) => {
          const mine = rows.filter((it) => it.component_name === component)
          return mine.length === 0 ? <p className="muted">No deploy among the latest of this install.</p> : <DeployTable rows={mine} />
        }}
      </LoadedList>
    </Section>
  )
}

function DeployTable({ rows }: { rows: InstallDeploy[] }) {
  const org = useOrg()
  return (
    <Table
      label="Deploys"
      rows={rows}
      id={(it) => it.id}
      columns={[
        { key: 'status', head: 'Status', fit: true, cell: (it) => <Chip status={it.status} kind="step" /> },
        { key: 'run', head: 'Run', plain: true, cell: (it) => <span className="row"><To to={org.to.run(it.workflow_id)}>{words(it.install_deploy_type)}</To>{it.plan_only && <Mark role="neutral">plan only</Mark>}{it.status_description && <span className="muted small" dir="auto">{it.status_description}</span>}</span> },
        { key: 'build', head: 'Build', cell: (it) => it.build_id && <To to={org.to.build(it.build_id)}>build</To> },
        { key: 'at', head: 'Began', fit: true, cell: (it) => <Time at={it.created_at} /> },
      ]}
    />
  )
}

function ComponentHealthBox({ name }: { name: string }) {
  const org = useOrg()
  const data = useInstall()
  const query = useQuery(health(org.id, data.install.id, 90))
  return (
    <Loaded query={query} skeleton={null}>
      {(found) => {
        const mine = found.components.find((it) => it.component === name)
        if (!mine) return null
        return (
          <Section title="Health, 90 days">
            <HealthBars days={mine.days} />
          </Section>
        )
      }}
    </Loaded>
  )
}

/** What the app's templates become in this install. */
function Config({ component }: { component: string }) {
  const org = useOrg()
  const data = useInstall()
  const [params, set] = useParamsState()
  const open = params.config === '1'
  const query = useQuery({ ...rendered(org.id, data.install.id, { component }), enabled: open })
  return (
    <Section title="Config" actions={<Button small aria-expanded={open} onClick={() => set({ config: open ? undefined : '1' })}>{open ? 'Hide' : 'Show with live values'}</Button>}>
      {open && (
        <Loaded query={query}>
          {(it) => (
            <>
              {it.problems?.map((problem) => (
                <Note key={`${problem.path} ${problem.message}`} role="warn">
                  <bdi className="mono">{problem.path}</bdi>: <span dir="auto">{problem.message}</span>
                </Note>
              ))}
              <pre className={styles.pre} tabIndex={0}>{JSON.stringify(it.rendered, null, 2)}</pre>
            </>
          )}
        </Loaded>
      )}
    </Section>
  )
}
