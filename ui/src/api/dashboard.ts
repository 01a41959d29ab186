/** Wire types of the dashboard's routes, as `crates/api/src/control/dashboard` has them. */
import type { components } from './schema'

type S = components['schemas']

export interface Can {
  ok: boolean
  reason?: string
}

export type Cans = Record<string, Can>

/** How a part of an install, or all of it, stands. */
export type PartWord = 'active' | 'inactive' | 'pending' | 'error' | 'unknown'

/** How a runner is. */
export type RunnerWord = 'pending' | 'active' | 'offline' | 'disabled'

/** How a workflow stands. */
export type WorkflowWord = 'pending' | 'in-progress' | 'approval-awaiting' | 'success' | 'warning' | 'error' | 'cancelled'

/** How a step of a workflow stands. */
export type StepWord = 'pending' | 'in-progress' | 'approval-awaiting' | 'approved' | 'success' | 'auto-skipped' | 'user-skipped' | 'drifted' | 'no-drift' | 'error' | 'unknown' | 'approval-denied' | 'approval-expired' | 'cancelled' | 'not-attempted' | 'discarded'

/** How a component is, as the runner observes it. */
export type HealthWord = 'healthy' | 'progressing' | 'degraded' | 'unhealthy' | 'unknown' | 'not-applicable'

/** What the last look for drift found. */
export type DriftWord = 'none' | 'drifted' | 'never-looked' | 'look-failed'

/** A page of installs, in the order that was asked for. */
export interface Fleet {
  rows: FleetRow[]
  /** Installs of the org. */
  total: number
  /** Installs that the filter takes. */
  matched: number
  facets: FleetFacets
  /** What the next page is asked for with. */
  next?: string
}

export interface FleetRow {
  id: string
  name: string
  app_id: string
  app_name: string
  runner_id: string
  runner_status: RunnerWord
  /** `aws`, `azure`, `gcp` or `local`. */
  platform: string
  /** The worst of its sandbox and its components. */
  status: PartWord
  sandbox_status: PartWord
  /** Every component that it wants or has, by name. */
  components: FleetComponent[]
  /** How many parts differ from what was deployed, as the last looks found. */
  drifted: number
  created_at: string
  /** When something of it changed last. */
  changed_at: string
  region?: string
  labels?: Record<string, string>
  runner_seen_at?: string
  /** The verdict about what is deployed; absent where nothing is observed. */
  health?: HealthWord
  /** The version of the app that was deployed last; absent before the first deploy. */
  version?: number
  /** The newest version of the app. */
  latest_version?: number
  /** A rollback keeps it at its version. */
  kept?: boolean
  /** Who changed it last. */
  changed_by?: string
  /** The workflow that runs, waits, or ran last. */
  workflow_id?: string
  workflow_type?: string
  workflow_status?: string
}

export interface FleetComponent {
  name: string
  status: PartWord
  /** `terraform_module`, `helm_chart` and so on. */
  type?: string
  drifted?: boolean
  /** Switched off in this install. */
  disabled?: boolean
  /** The version of the app that it was deployed from. */
  version?: number
}

/** How many installs of the org have each value, whatever is filtered. */
export interface FleetFacets {
  status: Facet[]
  app: Facet[]
  version: Facet[]
  drift: Facet[]
  health: Facet[]
  runner: Facet[]
  platform: Facet[]
  /** The most frequent labels, each as `key=value`. */
  label?: Facet[]
}

export interface Facet {
  value: string
  count: number
  /** What people call it, where that is another word: the name of an app. */
  name?: string
}

/** What needs a person, the worst first. */
export interface Attention {
  items: AttentionItem[]
  /** How many there are, shown or not; counted up to a bound. */
  total: number
  /** Plans that wait for an approval. */
  approvals: number
  /** Workflows that run now. */
  running: RunningWorkflow[]
  /** There are more than were counted. */
  more?: boolean
}

export interface AttentionItem {
  /** `unknown`, `failed`, `approval`, `data-loss`, `offline`, `unhealthy`, `drifted`, `disabled`, `build-failed` or `build-runner`. */
  kind: string
  /** 0 is the worst. */
  rank: number
  /** A sentence: what is the matter. */
  text: string
  since: string
  install_id?: string
  install_name?: string
  component?: string
  workflow_id?: string
  step_id?: string
  job_id?: string
  runner_id?: string
  build_id?: string
  app_id?: string
  /** What to do about it: the words of a button. */
  action?: string
}

export interface RunningWorkflow {
  id: string
  install_id: string
  install_name: string
  type: string
  status: string
  done: number
  total: number
  started_at: string
  /** What it does now. */
  now?: string
}

/** Plans that wait for a person. */
export interface Approvals {
  items: ApprovalItem[]
  total: number
  next?: string
}

export interface ApprovalItem {
  workflow_id: string
  workflow_type: string
  step_id: string
  /** The digest of the plan: what an answer names. */
  digest: string
  install_id: string
  install_name: string
  app_id: string
  app_name: string
  /** Such as `plan storefront`. */
  title: string
  changes: S['PlanChanges']
  /** Resources that hold data and would be destroyed or replaced. */
  data_loss: number
  asked_at: string
  /** Plans with the same contents have the same one. */
  contents: string
  can_approve: Can
  component?: string
  labels?: Record<string, string>
  expires_at?: string
  policies?: S['PolicyCounts']
  /** Why a person is asked though all plans were approved beforehand. */
  ask?: string
  /** What was answered, in the list of answered plans. */
  answer?: string
  answered_by?: string
  answered_at?: string
  note?: string
  drift?: DriftWord
}

/** The first page of an install. */
export interface InstallOverview {
  install: FleetRow
  runner: S['Runner']
  /** `prompt` or `approve-all`. */
  approval_option: string
  components: ComponentRow[]
  /** Values that the app's templates call outputs, by component; sensitive ones hidden. */
  outputs: Record<string, unknown>
  changes: ChangeRow[]
  can: Cans
  /** The workflow that runs now. */
  now?: RunningWorkflow[]
  /** Inputs whose value is not deployed. */
  undeployed_inputs?: string[]
  /** A rollback keeps the install at this version. */
  kept_at_version?: number
  managed_by?: string
  /** Jobs of its runner that wait. */
  jobs_queued?: number
  /** Sentences that a person must know before anything else. */
  warnings?: string[]
  has_readme?: boolean
  sandbox?: ComponentRow
}

/** A component in an install. */
export interface ComponentRow {
  name: string
  status: PartWord
  id?: string
  type?: string
  /** It is deployed, and the app does not have it any more. */
  retired?: boolean
  disabled?: boolean
  toggleable?: boolean
  depends_on?: string[]
  needed_by?: string[]
  version?: number
  /** The version that the next deploy brings, where it is another one. */
  next_version?: number
  drift?: DriftWord
  health?: HealthWord
  health_reason?: string
  deployed_at?: string
  /** The workflow that deployed it last. */
  workflow_id?: string
  /** A plan of it that waits: its step and workflow. */
  waiting_step_id?: string
  waiting_workflow_id?: string
  workspace_id?: string
  outputs?: Record<string, unknown>
}

/** Something that was done to an install. */
export interface ChangeRow {
  workflow_id: string
  type: string
  title: string
  status: string
  by: string
  at: string
  finished_at?: string
  version?: number
  plan_only?: boolean
  trouble?: string
}

/** Components and what they need, laid out in ranks (columns) and lanes (rows). */
export interface ComponentGraph {
  nodes: GraphNode[]
  edges: GraphEdge[]
  ranks: number
  lanes: number
}

export interface GraphNode {
  name: string
  rank: number
  lane: number
  type?: string
  status?: PartWord
  drift?: DriftWord
  health?: HealthWord
  disabled?: boolean
}

export interface GraphEdge {
  /** What is needed. */
  from: string
  /** What needs it. */
  to: string
}

/** The last look for drift at each part of an install. */
export interface InstallDrift {
  parts: PartDrift[]
  can: Cans
}

export interface PartDrift {
  /** A component's name, or `sandbox`. */
  part: string
  drift: DriftWord
  looked_at?: string
  workflow_id?: string
  /** The step whose plan shows what differs. */
  step_id?: string
  digest?: string
  changes?: S['PlanChanges']
  /** Why nothing is known. */
  reason?: string
  schedule?: string
  next_at?: string
}

/** A README as blocks, with values filled in; never HTML. */
export interface Readme {
  blocks: ReadmeBlock[]
  /** What could not be filled in. */
  problems?: string[]
}

export interface ReadmeBlock {
  /** `heading`, `paragraph`, `code`, `list`, `quote`, `table` or `rule`. */
  type: string
  level?: number
  text?: ReadmeText[]
  /** Of code. */
  language?: string
  code?: string
  ordered?: boolean
  start?: number
  /** Of a list: each item is blocks; of a quote: one item. */
  items?: ReadmeItem[]
  header?: ReadmeCell[]
  rows?: ReadmeRow[]
}

export interface ReadmeItem {
  blocks: ReadmeBlock[]
  /** Of a list of tasks. */
  checked?: boolean
}

export interface ReadmeRow {
  cells: ReadmeCell[]
}

export interface ReadmeCell {
  text: ReadmeText[]
}

/** A run of text. */
export interface ReadmeText {
  text: string
  strong?: boolean
  emphasis?: boolean
  code?: boolean
  strike?: boolean
  /** Where it leads: http, https or mailto, and nothing else. */
  href?: string
}

/** How two versions of an install's state differ. */
export interface StateDiff {
  from: number
  to: number
  changes: StateChange[]
  omitted?: number
}

export interface StateChange {
  /** Dotted. */
  path: string
  /** `added`, `removed` or `changed`. */
  change: string
  before?: string
  after?: string
}

/** A workflow, its steps in their order, and what may be done. */
export interface RunView {
  id: string
  type: string
  /** Such as `provision` or `deploy storefront`. */
  title: string
  status: WorkflowWord
  install_id: string
  install_name: string
  app_id: string
  app_name: string
  created_by: string
  created_at: string
  /** `prompt` or `approve-all`. */
  approval_option: string
  steps: RunStep[]
  /** What the slowest line of steps took, for the scale of bars. */
  span_ms: number
  can: Cans
  plan_only?: boolean
  started_at?: string
  finished_at?: string
  config_version?: number
  /** Why it did not succeed, or what it went on without. */
  trouble?: string
  /** For what it waits now. */
  waits?: WaitingReason
  /** The step that a page opens with. */
  focus?: string
  done?: number
  total?: number
  continue_on_error?: boolean
  cancelled_by?: string
  approved_by?: string
  /** The command that shows it. */
  command?: string
}

/** Why something waits: a code, a sentence, and what it is about. */
export interface WaitingReason {
  /** `approval`, `runner-offline`, `runner-busy`, `runner-disabled`, `target-busy`, `earlier-step`, `stack`, `health`, `build` or `other`. */
  code: string
  text: string
  subject_type?: string
  subject_id?: string
}

export interface RunStep {
  id: string
  name: string
  status: StepWord
  /** `system`, `user`, `approval` or `skipped`. */
  kind: string
  idx: number
  group: number
  attempt: number
  can: Cans
  component?: string
  /** `plan`, `apply`, `sandbox-plan`, `sandbox-apply`, `action`, `script`, `image`, `health`, `secrets`, `wait` or `skipped`. */
  work?: string
  /** Steps that must be done before, by `idx`. */
  after?: number[]
  /** Why it ended as it did. */
  reason?: string
  waits?: WaitingReason
  started_at?: string
  finished_at?: string
  /** Where its bar begins, and how long it is. */
  offset_ms?: number
  took_ms?: number
  /** There is a newer attempt. */
  replaced?: boolean
  job_id?: string
  job_status?: string
  log_stream_id?: string
  /** The digest of its plan. */
  digest?: string
  changes?: S['PlanChanges']
  data_loss?: number
  policies?: S['PolicyCounts']
  answer?: S['StepApprovalResponse']
  expires_at?: string
  role?: string
  /** Resources that an apply works at, the latest first; at most 20. */
  progress?: RunProgress[]
}

export interface RunProgress {
  address: string
  action: string
  status: string
  took_s?: number
}

/** What a step would change, masked and bounded. */
export interface PlanView {
  step_id: string
  workflow_id: string
  install_id: string
  /** What an approval names. */
  digest: string
  /** Such as `plan storefront`. */
  title: string
  /** `terraform`, `helm`, `manifest`, `job`, `image` or `simulated`. */
  type: string
  /** How the step that made it stands. */
  status: string
  changes: S['PlanChanges']
  /** Resources that hold data and would be destroyed or replaced. */
  data_loss: number
  /** Destroyed and replaced first, then by address. */
  resources: PlanResource[]
  outputs: PlanOutput[]
  /** What was changed outside of Ferry; shown only. */
  drift: PlanResource[]
  can: Cans
  component?: string
  asked_at?: string
  expires_at?: string
  /** Why a person is asked. */
  ask?: string
  policies?: S['PolicyCounts']
  verdicts?: PolicyVerdict[]
  answer?: S['StepApprovalResponse']
  /** Sentences that a reader must know: it ended with an error, it does not do everything. */
  notes?: string[]
  /** Resources that are not listed. */
  omitted?: number
  /** Nothing would change. */
  noop?: boolean
  terraform_version?: string
  /** Digests of earlier plans of the same part in this workflow, newest first: what `diff` takes. */
  earlier?: string[]
  /** The newest plan of the same part, where this one was replaced. */
  replaced_by_step?: string
}

export interface PolicyVerdict {
  policy: string
  /** `deny` or `warn`. */
  severity: string
  message: string
  address?: string
}

export interface PlanResource {
  address: string
  /** `create`, `update`, `replace`, `destroy`, `read`, `forget`, `import` or `move`. */
  action: string
  /** The module path, empty for the root; of an object in a cluster its namespace. */
  module?: string
  /** `aws_s3_bucket`, or the kind of an object. */
  type?: string
  name?: string
  provider?: string
  /** Why, as the end of a sentence. */
  reason?: string
  previous_address?: string
  import_id?: string
  deposed?: string
  /** `destroy-first`, `create-first` or `forget`, of a replacement. */
  replace?: string
  /** It would be destroyed or replaced, and usually holds data. */
  holds_data?: boolean
  attributes?: PlanAttribute[]
  attributes_omitted?: number
}

export interface PlanAttribute {
  path: string
  before: PlanValue
  after: PlanValue
  /** It can't be changed in place. */
  forces_replacement?: boolean
  /** Of texts with several lines: what changed, line by line. */
  hunks?: PlanHunk[]
}

export interface PlanValue {
  /** `absent`, `value`, `sensitive` or `unknown` (known after apply). */
  is: string
  /** As JSON writes it. */
  text?: string
  cut_chars?: number
}

export interface PlanHunk {
  before_line: number
  after_line: number
  /** Each begins with ` `, `+` or `-`. */
  lines: string[]
}

export interface PlanOutput {
  name: string
  /** `create`, `update` or `destroy`. */
  action: string
  values?: PlanAttribute[]
  values_omitted?: number
}

/** How a plan differs from another one of the same part. */
export interface PlanDiff {
  digest: string
  against: string
  /** Nothing differs in what they would do. */
  same: boolean
  /** Only in the newer one. */
  added: PlanResource[]
  /** Only in the older one. */
  removed: PlanResource[]
  /** In both, and other than it was: as the newer one has it. */
  changed: PlanResource[]
  unchanged?: number
}

/** What a log consists of. Lines are numbered from 1, over all executions of its job. */
export interface LogOutline {
  log_stream_id: string
  lines: number
  /** More may come. */
  open: boolean
  sections: LogSection[]
  /** Where a live tail goes on. */
  position: string
  job_id?: string
  job_name?: string
  job_status?: string
  install_id?: string
  install_name?: string
  workflow_id?: string
  step_id?: string
  /** Lines in whose place something is missing; the first 1,000. */
  gaps?: number[]
  /** Lines that look like failures; the first 1,000. */
  failures?: number[]
  failures_total?: number
  note?: string
  started_at?: string
  finished_at?: string
  /** The error that the job ended with. */
  error?: string
  /** Job needs a person to say how it ended. */
  unknown?: boolean
}

/** A step of an execution. */
export interface LogSection {
  name: string
  from: number
  to: number
  /** 1 for the first execution. */
  epoch?: number
  /** `running`, `done` or `failed`. */
  status?: string
  started_at?: string
  took_ms?: number
}

export interface LogLines {
  from: number
  lines: LogLine[]
  /** Of the whole log, as far as it is known now. */
  total: number
  position: string
}

export interface LogLine {
  n: number
  time: string
  text: string
  /** `stdout`, `stderr` or `system`; stdout where it is absent. */
  pipe?: string
  step?: string
  /** So many bytes are missing here. */
  gap_bytes?: number
  /** The line is longer: so many bytes of it are not here. */
  cut_bytes?: number
}

/** Lines of a log that a search finds. */
export interface LogMatches {
  /** Line numbers, in order. */
  lines: number[]
  total: number
  /** There are more than are listed. */
  more?: boolean
}

/** The frame of every page. */
export interface OrgFrame {
  org_id: string
  name: string
  role: S['Role']
  simulated: boolean
  approvals: number
  build_runner: BuildRunnerState
  can: Cans
  version?: string
}

export interface BuildRunnerState {
  id: string
  status: string
  text: string
  /** Builds that wait or run. */
  builds_open?: number
  builds_running?: number
}

export interface SearchResults {
  items: SearchItem[]
}

export interface SearchItem {
  /** `install`, `app`, `component`, `workflow`, `runner`, `job`, `action`, `runbook` or `build`. */
  kind: string
  id: string
  name: string
  /** What it belongs to. */
  of?: string
  app_id?: string
  install_id?: string
  workflow_id?: string
  status?: string
}

/** A filter of the fleet that somebody has saved. */
export interface SavedView {
  id: string
  name: string
  /** The query of the page, such as `app=shop&drift=drifted`. */
  query: string
  /** Everybody of the org sees it. */
  shared: boolean
  created_by: string
  created_at: string
  mine: boolean
}

export interface CreateSavedView {
  name: string
  query: string
  shared?: boolean
}

/** Something that happened, with names in place of ids. */
export interface AuditEntry {
  id: string
  time: string
  kind: string
  /** Who did it. */
  who: string
  /** A sentence. */
  text: string
  subject_type: string
  subject_id: string
  data: unknown
  subject_name?: string
  install_id?: string
  workflow_id?: string
}

export interface AuditPage {
  entries: AuditEntry[]
  next?: string
}

/** What a page listens to: which things changed. The page asks for what it shows. */
export interface LiveNote {
  /** As events have it, or `runner.presence`, `job.step`, `step.waiting`. */
  kind: string
  subject_type: string
  subject_id: string
  install_id?: string
  workflow_id?: string
  step_id?: string
  runner_id?: string
  app_id?: string
  status?: string
  actor?: string
  at?: string
}
