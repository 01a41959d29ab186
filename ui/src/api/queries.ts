/** The only place that makes query keys: `[org, thing, id?, part?, parameters?]`. `invalidate.ts` reads them. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { type Answer, get, path, type Query, send } from './client'
import type * as T from './types'

export type Org = string

export const PAGE = 50

function one<D>(org: Org, key: readonly unknown[], route: string, query?: Query) {
  return queryOptions({ queryKey: [org, ...key, ...(query ? [query] : [])], queryFn: ({ signal }) => get<D>(route, { org, query, signal }) })
}

/** Lists that page by offset. */
function list<D>(org: Org, key: readonly unknown[], route: string, query: Query = {}) {
  return infiniteQueryOptions({
    queryKey: [org, ...key, query],
    queryFn: ({ signal, pageParam }): Promise<Answer<D[]>> => send<D[]>('GET', route, { org, query: { limit: PAGE, offset: pageParam || undefined, ...query }, signal }),
    initialPageParam: 0,
    getNextPageParam: (last: Answer<D[]>) => last.nextOffset,
  })
}

/** Pages that name the next one themselves. */
function cursor<D extends { next?: string }>(org: Org, key: readonly unknown[], route: string, query: Query = {}) {
  return infiniteQueryOptions({
    queryKey: [org, ...key, query],
    queryFn: ({ signal, pageParam }) => get<D>(route, { org, query: { limit: PAGE, cursor: pageParam || undefined, ...query }, signal }),
    initialPageParam: '',
    getNextPageParam: (last: D) => last.next || undefined,
  })
}

export const session = queryOptions({ queryKey: ['', 'session'], queryFn: ({ signal }) => get<T.CurrentSession>('/v1/session', { signal }), staleTime: 60_000 })

export const frame = (org: Org) => one<T.OrgFrame>(org, ['frame'], '/v1/frame')
export const search = (org: Org, q: string) => one<T.SearchResults>(org, ['search'], '/v1/search', { q })

export const fleet = (org: Org, { sort, ...query }: Query) =>
  cursor<T.Fleet>(org, ['fleet'], '/v1/fleet', { ...query, limit: 100, ...(typeof sort === 'string' ? { sort: sort.replace('-', ''), order: sort.startsWith('-') ? 'desc' : 'asc' } : {}) })
export const attention = (org: Org) => one<T.Attention>(org, ['attention'], '/v1/attention')
export const approvals = (org: Org, query: Query) => cursor<T.Approvals>(org, ['approvals'], '/v1/approvals', query)
export const views = (org: Org) => one<T.SavedView[]>(org, ['views'], '/v1/views')
export const audit = (org: Org, query: Query) => cursor<T.AuditPage>(org, ['audit'], '/v1/audit', query)

export const workflows = (org: Org, query: Query) => list<T.Workflow>(org, ['workflows'], '/v1/workflows', query)
export const run = (org: Org, id: string) => one<T.RunView>(org, ['workflow', id], path`/v1/workflows/${id}/view`)
export const plan = (org: Org, step: string) => one<T.PlanView>(org, ['plan', step], path`/v1/workflow-steps/${step}/plan`)
export const planDiff = (org: Org, step: string, against: string) => one<T.PlanDiff>(org, ['plan', step, 'diff'], path`/v1/workflow-steps/${step}/plan/diff`, { against })

export const job = (org: Org, id: string) => one<T.Job>(org, ['job', id], path`/v1/runner-jobs/${id}`)
export const jobs = (org: Org, query: Query) => list<T.Job>(org, ['jobs'], '/v1/runner-jobs', query)
export const outline = (org: Org, log: string) => one<T.LogOutline>(org, ['log', log, 'outline'], path`/v1/log-streams/${log}/outline`)
export const lines = (org: Org, log: string, from: number, count: number, signal?: AbortSignal) => get<T.LogLines>(path`/v1/log-streams/${log}/lines`, { org, query: { from, count }, signal })
export const matches = (org: Org, log: string, query: Query) => one<T.LogMatches>(org, ['log', log, 'matches'], path`/v1/log-streams/${log}/matches`, query)

const part = <D>(org: Org, install: string, name: string, route: string, query?: Query) => one<D>(org, ['install', install, name], route, query)

export const overview = (org: Org, id: string) => part<T.InstallOverview>(org, id, 'overview', path`/v1/installs/${id}/overview`)
export const graph = (org: Org, id: string) => part<T.ComponentGraph>(org, id, 'graph', path`/v1/installs/${id}/graph`)
export const drift = (org: Org, id: string) => part<T.InstallDrift>(org, id, 'drift', path`/v1/installs/${id}/drift`)
export const readme = (org: Org, id: string) => part<T.Readme>(org, id, 'readme', path`/v1/installs/${id}/readme`)
export const install = (org: Org, id: string) => part<T.Install>(org, id, 'self', path`/v1/installs/${id}`)
export const health = (org: Org, id: string, days: number) => part<T.InstallHealth>(org, id, 'health', path`/v1/installs/${id}/health`, { days })
export const healthHistory = (org: Org, id: string, component: string) => list<T.HealthTransition>(org, ['install', id, 'health-history'], path`/v1/installs/${id}/health/history`, { component })
export const history = (org: Org, id: string, query: Query) => list<T.Workflow>(org, ['install', id, 'workflows'], path`/v1/installs/${id}/workflows`, query)
export const deploys = (org: Org, id: string) => list<T.InstallDeploy>(org, ['install', id, 'deploys'], path`/v1/installs/${id}/deploys`)
export const sandboxRuns = (org: Org, id: string) => list<T.InstallSandboxRun>(org, ['install', id, 'sandbox-runs'], path`/v1/installs/${id}/sandbox-runs`)
export const inputs = (org: Org, id: string) => part<T.InstallInputs>(org, id, 'inputs', path`/v1/installs/${id}/inputs/current`)
export const inputVersions = (org: Org, id: string) => list<T.InstallInputs>(org, ['install', id, 'input-versions'], path`/v1/installs/${id}/inputs`)
export const installActions = (org: Org, id: string) => list<T.InstallActionWorkflow>(org, ['install', id, 'actions'], path`/v1/installs/${id}/action-workflows`)
export const actionRuns = (org: Org, id: string, action: string) => part<T.InstallActionWorkflow>(org, id, 'action-runs', path`/v1/installs/${id}/action-workflows/${action}/recent-runs`)
export const schedules = (org: Org, id: string) => part<T.InstallSchedule[]>(org, id, 'schedules', path`/v1/installs/${id}/schedules`)
export const runbooks = (org: Org, id: string) => list<T.InstallRunbook>(org, ['install', id, 'runbooks'], path`/v1/installs/${id}/runbooks`)
export const runbookRuns = (org: Org, id: string) => list<T.InstallRunbookRun>(org, ['install', id, 'runbook-runs'], path`/v1/installs/${id}/runbook-runs`)
export const stack = (org: Org, id: string) => part<T.InstallStack>(org, id, 'stack', path`/v1/installs/${id}/stack`)
export const policies = (org: Org, id: string) => list<T.PolicyReport>(org, ['install', id, 'policies'], path`/v1/installs/${id}/policy-reports`)
export const state = (org: Org, id: string, version: string) => part<T.InstallState>(org, id, 'state', path`/v1/installs/${id}/state`, { version })
export const stateVersions = (org: Org, id: string) => list<T.InstallStateVersion>(org, ['install', id, 'state-versions'], path`/v1/installs/${id}/state/versions`)
export const stateDiff = (org: Org, id: string, from: string, to: string) => part<T.StateDiff>(org, id, 'state-diff', path`/v1/installs/${id}/state/diff`, { from, to })
export const workspaces = (org: Org, id: string) => part<T.TerraformWorkspace[]>(org, id, 'workspaces', path`/v1/installs/${id}/terraform-workspaces`)
export const states = (org: Org, workspace: string) => list<T.TerraformState>(org, ['workspace', workspace, 'states'], path`/v1/terraform-workspaces/${workspace}/states`)
export const terraformState = (org: Org, workspace: string, id: string) => one<T.TerraformState>(org, ['workspace', workspace, 'state', id], path`/v1/terraform-workspaces/${workspace}/states/${id}`)
export const terraformDiff = (org: Org, workspace: string, id: string, against: string) => one<T.StateDiff>(org, ['workspace', workspace, 'diff', id], path`/v1/terraform-workspaces/${workspace}/states/${id}/diff`, { against })
export const rendered = (org: Org, id: string, query: Query) => part<T.Rendered>(org, id, 'rendered', path`/v1/installs/${id}/render`, query)

export const apps = (org: Org, query: Query = {}) => list<T.App>(org, ['apps'], '/v1/apps', query)
export const app = (org: Org, id: string) => one<T.App>(org, ['app', id, 'self'], path`/v1/apps/${id}`)
export const versions = (org: Org, id: string) => list<T.AppConfig>(org, ['app', id, 'versions'], path`/v1/apps/${id}/configs`)
export const version = (org: Org, id: string, config: string) => one<T.AppConfig>(org, ['app', id, 'version', config], path`/v1/apps/${id}/config/${config}`, { recurse: 'true' })
export const latestVersion = (org: Org, id: string) => one<T.AppConfig>(org, ['app', id, 'latest'], path`/v1/apps/${id}/latest-config`, { recurse: 'true' })
export const versionDiff = (org: Org, id: string, config: string, against: string) => one<ConfigChange[]>(org, ['app', id, 'version-diff', config], path`/v1/apps/${id}/config/${config}/diff`, { against })
export const inputConfig = (org: Org, id: string) => one<T.AppInputConfig>(org, ['app', id, 'inputs'], path`/v1/apps/${id}/input-latest-config`)
export const appComponents = (org: Org, id: string) => list<T.Component>(org, ['app', id, 'components'], path`/v1/apps/${id}/components`)
export const appGraph = (org: Org, id: string) => one<T.ComponentGraph>(org, ['app', id, 'graph'], path`/v1/apps/${id}/graph`)
export const appActions = (org: Org, id: string) => list<T.ActionWorkflow>(org, ['app', id, 'actions'], path`/v1/apps/${id}/action-workflows`)
export const appSecrets = (org: Org, id: string) => list<T.AppVariable>(org, ['app', id, 'secrets'], path`/v1/apps/${id}/secrets`)
export const builds = (org: Org, query: Query) => list<T.Build>(org, ['builds'], '/v1/builds', query)
export const build = (org: Org, id: string) => one<T.Build>(org, ['build', id], path`/v1/builds/${id}`)
export const componentConfigs = (org: Org, id: string) => list<T.ComponentConfigConnection>(org, ['component', id, 'configs'], path`/v1/components/${id}/configs`)

export const runners = (org: Org, query: Query = {}) => list<T.Runner>(org, ['runners'], '/v1/runners', query)
export const runner = (org: Org, id: string) => one<T.Runner>(org, ['runner', id], path`/v1/runners/${id}`)

export const members = (org: Org) => one<T.OrgMember[]>(org, ['members'], '/v1/members')
export const invites = (org: Org) => list<T.OrgInvite>(org, ['invites'], '/v1/orgs/current/invites')
export const tokens = (org: Org) => list<T.Token>(org, ['tokens'], '/v1/tokens')
export const sources = (org: Org) => one<T.SourceLogin[]>(org, ['sources'], '/v1/source-logins')
export const logKeeping = (org: Org) => one<T.LogKeeping>(org, ['log-keeping'], '/v1/orgs/current/logs')

/** One difference of two versions of an app, as the API's list has it. */
export interface ConfigChange {
  part: string
  name?: string
  kind: string
  fields?: { path: string; old?: string | null; new?: string | null }[]
}
