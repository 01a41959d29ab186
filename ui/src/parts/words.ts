/** Words for what the API names in one word. */
import { count, plural, words } from '../lib/format'
import type { AttentionItem, PlanChanges } from '../api/types'
import type { Role } from '../lib/status'
import type { IconName } from '../base/Icon'
import type { Paths } from './paths'

const workflowNames: Record<string, string> = {
  provision: 'provision',
  reprovision: 'reprovision',
  reprovision_sandbox: 'reprovision sandbox',
  deprovision: 'deprovision',
  deprovision_sandbox: 'deprovision sandbox',
  deploy_components: 'deploy all',
  manual_deploy: 'deploy',
  teardown_component: 'tear down',
  teardown_components: 'tear down all',
  input_update: 'change inputs',
  action_workflow_run: 'action',
  runbook_run: 'runbook',
  sync_secrets: 'sync secrets',
  drift_run: 'check drift',
  drift_run_reprovision_sandbox: 'check drift of sandbox',
}

export const workflowTypes = Object.keys(workflowNames)
export const workflowName = (type: string): string => workflowNames[type] ?? words(type)

export interface Sign {
  text: string
  role: Role
  icon: IconName
  words: string
}

/** The counts of a plan, each with its sign: `+2`, `~3`, `-/+1`, `-1`. */
export function signs(changes: PlanChanges | null | undefined): Sign[] {
  if (!changes) return []
  const all: [number | undefined, string, Role, IconName, string][] = [
    [changes.destroy, '-', 'bad', 'minus', 'to destroy'],
    [changes.replace, '-/+', 'bad', 'replaced', 'to replace'],
    [changes.update, '~', 'warn', 'tilde', 'to update'],
    [changes.create, '+', 'ok', 'plus', 'to create'],
    [changes.import, '<-', 'info', 'right', 'to import'],
    [changes.moved, '->', 'neutral', 'right', 'to move'],
    [changes.forget, 'x', 'warn', 'cross', 'to forget'],
    [changes.outputs, 'o', 'info', 'dot', changes.outputs === 1 ? 'output' : 'outputs'],
    [changes.other, '?', 'neutral', 'question', 'other'],
  ]
  return all.filter(([n]) => (n ?? 0) > 0).map(([n, sign, role, icon, text]) => ({ text: /^[o?]$/.test(sign) ? `${count(n ?? 0)} ${text}` : `${sign}${n}`, role, icon, words: `${count(n ?? 0)} ${text}` }))
}

/** `2 to create, 1 to destroy`, or `no changes`. */
export function changesText(changes: PlanChanges | null | undefined): string {
  if (!changes) return ''
  const parts = signs(changes).map((it) => it.words)
  if (parts.length === 0) return changes.recorded ? 'updates only what Ferry has recorded' : 'no changes'
  return parts.join(', ')
}

export const dataLossText = (n: number): string => `${plural(n, 'resource')} that ${n === 1 ? 'holds' : 'hold'} data ${n === 1 ? 'is' : 'are'} destroyed or replaced`

const looks: Record<string, { role: Role; icon: IconName; word: string }> = {
  unknown: { role: 'odd', icon: 'question', word: 'unknown' },
  failed: { role: 'bad', icon: 'cross', word: 'failed' },
  approval: { role: 'ask', icon: 'diamond', word: 'approval' },
  'data-loss': { role: 'bad', icon: 'diamond', word: 'data loss' },
  offline: { role: 'bad', icon: 'offline', word: 'offline' },
  unhealthy: { role: 'bad', icon: 'cross', word: 'unhealthy' },
  drifted: { role: 'warn', icon: 'unequal', word: 'drifted' },
  disabled: { role: 'warn', icon: 'power', word: 'off' },
  'build-failed': { role: 'bad', icon: 'cross', word: 'build' },
  'build-runner': { role: 'bad', icon: 'offline', word: 'builds' },
}

export const attentionLook = (kind: string) => looks[kind] ?? { role: 'warn' as const, icon: 'bang' as const, word: words(kind) }

/** Where what needs a person is looked at and done. */
export function attentionPlace(to: Paths, it: AttentionItem): string {
  if (it.kind === 'offline' || it.kind === 'disabled' || it.kind === 'build-runner') {
    if (it.runner_id) return to.runner(it.runner_id)
  }
  if (it.kind === 'drifted' && it.install_id) return to.install(it.install_id, 'drift')
  if (it.kind === 'unhealthy' && it.install_id) return to.install(it.install_id, 'health')
  if (it.workflow_id) return to.run(it.workflow_id, it.step_id)
  if (it.job_id) return to.job(it.job_id)
  if (it.build_id) return to.build(it.build_id)
  if (it.install_id) return to.install(it.install_id)
  if (it.app_id) return to.app(it.app_id)
  return to.fleet
}

const buttons: Record<string, string> = {
  unknown: 'Settle', failed: 'Look', approval: 'Review', 'data-loss': 'Review', offline: 'Runner', unhealthy: 'Health', drifted: 'Drift', disabled: 'Runner', 'build-failed': 'Build', 'build-runner': 'Runner',
}

export const attentionButton = (it: AttentionItem): string => it.action || buttons[it.kind] || 'Look'
