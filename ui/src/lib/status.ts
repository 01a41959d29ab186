/** What the API's status words look like: a role (its colour), an icon and a word. Colour never speaks alone. */

export type Role = 'neutral' | 'info' | 'ask' | 'ok' | 'warn' | 'bad' | 'odd'

export type Icon =
  | 'circle' | 'dash' | 'skip' | 'square' | 'never' | 'replaced' | 'dotted' | 'half' | 'diamond' | 'check' | 'dot' | 'link'
  | 'equal' | 'unequal' | 'hourglass' | 'power' | 'drain' | 'bang' | 'cross' | 'timeout' | 'denied' | 'offline' | 'question'

export interface Look {
  role: Role
  icon: Icon
  word: string
}

/** The kinds of things whose `active`, `error` or `pending` mean something of their own. */
export type Kind = 'component' | 'runner' | 'build' | 'app' | 'step' | 'workflow' | 'job' | 'health' | 'invite' | 'drift' | 'stack'

const look = (role: Role, icon: Icon, word: string): Look => ({ role, icon, word })

const waiting = look('neutral', 'circle', 'waiting')
const running = look('info', 'half', 'running')
const approval = look('ask', 'diamond', 'needs approval')
const done = look('ok', 'check', 'done')
const failed = look('bad', 'cross', 'failed')
const unknown = look('odd', 'question', 'unknown')

const everywhere: Record<string, Look> = {
  pending: waiting,
  queued: waiting,
  available: waiting,
  open: waiting,
  waiting,
  'auto-skipped': look('neutral', 'dash', 'no change'),
  'no-op': look('neutral', 'dash', 'no change'),
  noop: look('neutral', 'dash', 'no change'),
  'user-skipped': look('neutral', 'skip', 'skipped'),
  'denied-skipped': look('neutral', 'skip', 'skipped'),
  skipped: look('neutral', 'skip', 'skipped'),
  cancelled: look('neutral', 'square', 'cancelled'),
  'not-attempted': look('neutral', 'never', 'never ran'),
  discarded: look('neutral', 'replaced', 'replaced'),
  inactive: look('neutral', 'dotted', 'not deployed'),
  'not-deployed': look('neutral', 'dotted', 'not deployed'),
  retired: look('neutral', 'dotted', 'retired'),
  'not-applicable': look('neutral', 'dash', 'not measured'),
  'in-progress': running,
  planning: running,
  syncing: running,
  building: running,
  executing: running,
  deploying: running,
  applying: running,
  provisioning: running,
  deprovisioning: running,
  deleting: running,
  running,
  progressing: look('info', 'half', 'progressing'),
  started: running,
  'approval-awaiting': approval,
  'pending-approval': approval,
  success: done,
  finished: done,
  done,
  approved: done,
  succeeded: done,
  accepted: done,
  active: done,
  live: look('ok', 'dot', 'live'),
  online: look('ok', 'link', 'online'),
  healthy: look('ok', 'dot', 'healthy'),
  'no-drift': look('ok', 'equal', 'no drift'),
  drifted: look('warn', 'unequal', 'drifted'),
  'approval-expired': look('warn', 'hourglass', 'expired'),
  expired: look('warn', 'hourglass', 'expired'),
  disabled: look('warn', 'power', 'off by customer'),
  draining: look('warn', 'drain', 'draining'),
  warning: look('warn', 'bang', 'done, with skips'),
  warn: look('warn', 'bang', 'policy warns'),
  degraded: look('warn', 'bang', 'degraded'),
  error: failed,
  failed,
  'timed-out': look('bad', 'timeout', 'timed out'),
  'approval-denied': look('bad', 'denied', 'denied'),
  denied: look('bad', 'denied', 'denied'),
  deny: look('bad', 'denied', 'denied'),
  revoked: look('bad', 'denied', 'revoked'),
  unhealthy: look('bad', 'cross', 'unhealthy'),
  offline: look('bad', 'offline', 'offline'),
  unknown,
}

const own: Partial<Record<Kind, Record<string, Look>>> = {
  component: {
    active: look('ok', 'dot', 'live'),
    pending: look('neutral', 'circle', 'never deployed'),
    disabled: look('neutral', 'dotted', 'switched off'),
  },
  runner: {
    active: look('ok', 'link', 'online'),
    pending: look('neutral', 'circle', 'not joined'),
    error: look('bad', 'offline', 'offline'),
    unknown: look('odd', 'question', 'not seen yet'),
  },
  build: { active: done, open: running },
  app: { active: look('ok', 'check', 'active') },
  invite: { pending: look('ask', 'hourglass', 'invited'), active: done },
  health: { unknown: look('odd', 'question', 'not known') },
  drift: {
    none: look('ok', 'equal', 'no drift'),
    'never-looked': look('neutral', 'circle', 'never checked'),
    'look-failed': look('odd', 'question', 'check failed'),
  },
  stack: {
    active: look('ok', 'check', 'active'),
    'awaiting-user-run': look('ask', 'hourglass', 'waits for the customer'),
    expired: look('warn', 'hourglass', 'expired'),
    outdated: look('neutral', 'replaced', 'replaced'),
  },
}

/** The look of a status; a word that this page does not know shows as itself. */
export function statusLook(status: string | undefined | null, kind?: Kind): Look {
  if (!status) return look('neutral', 'circle', 'not known')
  const key = status.toLowerCase().replaceAll('_', '-')
  return (kind && own[kind]?.[key]) || everywhere[key] || look('neutral', 'question', status)
}

/** Whether a status of a workflow, step, job or build can still change by itself. */
export function isOpen(status: string | undefined): boolean {
  if (!status) return false
  return ['pending', 'queued', 'available', 'open', 'in-progress', 'planning', 'syncing', 'building', 'executing', 'approval-awaiting', 'pending-approval'].includes(status)
}
