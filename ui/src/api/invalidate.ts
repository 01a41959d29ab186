/** Which cached answers an event makes old. What is on screen is fetched again, gathered over 100 ms. */
import type { QueryClient, QueryKey } from '@tanstack/react-query'
import type { LiveNote, RunView } from './types'

const GATHER = 100

type Test = (key: QueryKey) => boolean

/** Whether an answer with this key may show what the note is about. */
export function touches(note: LiveNote): Test {
  const [family = ''] = note.kind.split('.')
  const ids = new Set([note.subject_id, note.install_id, note.workflow_id, note.step_id, note.runner_id, note.app_id].filter(Boolean))
  const lists = new Set(listsOf[family] ?? [])
  return (key) => {
    const [, thing, id, part] = key as [string, string, unknown, unknown]
    if (thing === 'log') return false
    if (lists.has(thing)) return true
    if (thing === 'install') return typeof id === 'string' && ids.has(id) && concerns(family, part)
    if (thing === 'workspace') return family === 'install' || family === 'workflow'
    return typeof id === 'string' && ids.has(id)
  }
}

/** Lists that a family of events may change. */
const listsOf: Record<string, string[]> = {
  workflow: ['fleet', 'attention', 'approvals', 'workflows', 'frame'],
  step: ['attention', 'approvals', 'frame', 'fleet'],
  install: ['fleet', 'attention', 'frame'],
  runner: ['fleet', 'attention', 'runners', 'frame'],
  job: ['jobs', 'attention', 'frame'],
  build: ['builds', 'attention', 'frame'],
  config: ['apps', 'fleet', 'builds'],
  app: ['apps', 'fleet'],
  component: ['fleet'],
  health: ['fleet', 'attention'],
  member: ['members', 'frame'],
  invite: ['invites', 'members'],
  token: ['tokens'],
  source: ['sources'],
  view: ['views'],
  org: ['frame', 'session'],
}

function concerns(family: string, part: unknown): boolean {
  if (family === 'job') return part === 'overview' || part === 'actions' || part === 'action-runs'
  if (family === 'runner') return part === 'overview' || part === 'self' || part === 'stack'
  if (family === 'health') return part === 'overview' || part === 'health' || part === 'health-history' || part === 'graph'
  if (family === 'step') return part === 'overview' || part === 'drift'
  return true
}

/** Writes the new status word where a run is on screen, before the whole is fetched. */
function patchStatus(client: QueryClient, org: string, note: LiveNote) {
  if (!note.status || !note.workflow_id) return
  client.setQueryData<RunView>([org, 'workflow', note.workflow_id], (run) => {
    if (!run) return run
    if (note.kind === 'workflow.status') return { ...run, status: note.status as RunView['status'] }
    const step = note.step_id || note.subject_id
    if (!note.kind.startsWith('workflow.step') || !run.steps.some((it) => it.id === step)) return run
    return { ...run, steps: run.steps.map((it) => (it.id === step ? { ...it, status: note.status as (typeof it)['status'] } : it)) }
  })
}

/** The outline of a log that is still written: its steps and its end come as events of jobs. */
const growing = (key: QueryKey, data: unknown): boolean => key[1] === 'log' && key[3] === 'outline' && (data as { open?: boolean } | undefined)?.open === true

export class Invalidator {
  private pending: LiveNote[] = []
  private timer: ReturnType<typeof setTimeout> | undefined
  private flushed = 0

  constructor(
    private readonly client: QueryClient,
    private readonly org: string,
  ) {}

  note(note: LiveNote) {
    patchStatus(this.client, this.org, note)
    this.pending.push(note)
    // The first event is shown at once; what follows it closely is gathered.
    this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.flushed + GATHER - Date.now()))
  }

  flush() {
    clearTimeout(this.timer)
    this.timer = undefined
    this.flushed = Date.now()
    const tests = this.pending.map(touches)
    const works = this.pending.some((note) => /^(job|build|workflow)\./.test(note.kind))
    this.pending = []
    void this.client.invalidateQueries({
      predicate: ({ queryKey, state }) => queryKey[0] === this.org && (tests.some((test) => test(queryKey)) || (works && growing(queryKey, state.data))),
    })
  }

  /** The stream can't tell what was missed: everything is fetched again. */
  reset() {
    this.pending = []
    void this.client.invalidateQueries({ predicate: (query) => query.queryKey[0] === this.org || query.queryKey[0] === '' })
  }

  stop() {
    clearTimeout(this.timer)
    this.timer = undefined
  }
}
