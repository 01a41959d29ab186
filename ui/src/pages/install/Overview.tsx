import { useQuery } from '@tanstack/react-query'
import { graph, readme } from '../../api/queries'
import { Button } from '../../base/Button'
import { Chip, Mark } from '../../base/Chip'
import { Empty, Note } from '../../base/Failure'
import { Time, Took } from '../../base/Time'
import { Graph } from '../../parts/graph/Graph'
import { Loaded } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { ReadmeBlocks } from '../../parts/readme/Readme'
import { To, useParamsState } from '../../parts/To'
import { Values } from '../../parts/Values'
import { workflowName } from '../../parts/words'
import { Progress } from '../fleet/Needs'
import { ComponentTable } from './ComponentTable'
import { useInstall } from './use-install'
import styles from './Install.module.css'

/** What runs, what changed, and what the install gives. */
export function Overview() {
  const org = useOrg()
  const data = useInstall()
  const it = data.install
  const [params, set] = useParamsState()
  const asGraph = params.view === 'graph'
  const drawn = useQuery({ ...graph(org.id, it.id), enabled: asGraph })
  const outputs = Object.entries(data.outputs).filter(([, value]) => !(typeof value === 'object' && value !== null && Object.keys(value).length === 0))
  return (
    <>
      {(data.now?.length ?? 0) > 0 && (
        <Section title="Now">
          {data.now?.map((run) => (
            <div key={run.id} className="row">
              <Chip status={run.status} kind="workflow" />
              <To to={org.to.run(run.id)}>{workflowName(run.type)}</To>
              <Progress done={run.done} total={run.total} />
              <span className="muted">
                <bdi>{run.now}</bdi> <Time at={run.started_at} />
              </span>
            </div>
          ))}
        </Section>
      )}
      <Section
        title="Components"
        actions={
          <span className="row" role="group" aria-label="Show as">
            <Button small aria-pressed={!asGraph} kind={asGraph ? 'plain' : 'primary'} onClick={() => set({ view: undefined })}>
              List
            </Button>
            <Button small aria-pressed={asGraph} kind={asGraph ? 'primary' : 'plain'} onClick={() => set({ view: 'graph' })}>
              Graph
            </Button>
          </span>
        }
      >
        {asGraph ? (
          <Loaded query={drawn}>{(found) => <Graph graph={found} place={(name) => org.to.component(it.id, name)} />}</Loaded>
        ) : data.components.length === 0 ? (
          <Empty command={`ferry apps sync . --app ${it.app_name}`}>The app has no components yet.</Empty>
        ) : (
          <ComponentTable data={data} sandbox />
        )}
      </Section>
      <div className={styles.columns}>
        <div className={styles.column}>
          <Section title="Changes" actions={<To to={org.to.install(it.id, 'history')}>All</To>}>
            {data.changes.length === 0 && <p className="muted">Nothing was done to this install yet.</p>}
            <ul>
              {data.changes.map((change) => (
                <li key={change.workflow_id} className={styles.change}>
                  <Chip status={change.status} kind="workflow" />
                  <To to={org.to.run(change.workflow_id)}>
                    <bdi>{change.title || workflowName(change.type)}</bdi>
                  </To>
                  {change.plan_only && <Mark role="neutral">plan only</Mark>}
                  {change.version !== undefined && <span className="muted">v{change.version}</span>}
                  <span className="muted small">
                    <bdi>{change.by}</bdi> <Time at={change.at} />
                    {change.finished_at && (
                      <>
                        , took <Took from={change.at} to={change.finished_at} />
                      </>
                    )}
                  </span>
                  {change.trouble && (
                    <span className="small" dir="auto">
                      {change.trouble}
                    </span>
                  )}
                </li>
              ))}
            </ul>
          </Section>
          {data.has_readme && <TheReadme id={it.id} />}
        </div>
        <div className={styles.column}>
          <Section title="Outputs">
            {outputs.length === 0 && <p className="muted">No outputs yet: they come with the first deploy.</p>}
            {outputs.map(([name, value]) => (
              <div key={name}>
                <h3>
                  <bdi>{name}</bdi>
                </h3>
                <Values values={typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : { [name]: value }} />
              </div>
            ))}
          </Section>
        </div>
      </div>
      <CommandLine text={`ferry installs get ${it.name}`} />
    </>
  )
}

function TheReadme({ id }: { id: string }) {
  const org = useOrg()
  const query = useQuery(readme(org.id, id))
  return (
    <Section title="README">
      <Loaded query={query}>
        {(found) => (
          <>
            {(found.problems?.length ?? 0) > 0 && <Note role="warn">Not filled in: {found.problems?.join('; ')}</Note>}
            <ReadmeBlocks blocks={found.blocks} />
          </>
        )}
      </Loaded>
    </Section>
  )
}
