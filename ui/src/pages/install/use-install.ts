import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { createContext, useContext } from 'react'
import { path, post } from '../../api/client'
import { overview } from '../../api/queries'
import type { CreateWorkflow, InstallOverview } from '../../api/types'
import { useOrg } from '../../parts/org'

export const InstallContext = createContext<InstallOverview | undefined>(undefined)

/** The install whose pages these are. */
export function useInstall(): InstallOverview {
  const found = useContext(InstallContext)
  if (!found) throw new Error('this page needs an install')
  return found
}

export function useOverview() {
  const org = useOrg()
  const { install = '' } = useParams({ strict: false })
  return useQuery(overview(org.id, install))
}

/** Starts a run on an install. */
export const start = (org: string, install: string, body: CreateWorkflow, idempotency: string) => post<{ workflow_id: string }>(path`/v1/installs/${install}/workflows`, { org, body, idempotency })

const isImage = (type?: string) => type === 'container_image' || type === 'docker_build'

/** Looks for drift at every part that is there: one run for each. */
export async function checkAll(org: string, data: InstallOverview, idempotency: string) {
  const there = (status: string) => ['active', 'error', 'unknown'].includes(status)
  if (data.sandbox && there(data.sandbox.status)) await start(org, data.install.id, { type: 'drift_run_reprovision_sandbox' }, `${idempotency}-sandbox`)
  for (const row of data.components) {
    if (there(row.status) && !row.disabled && !isImage(row.type)) await start(org, data.install.id, { type: 'drift_run', component: row.name }, `${idempotency}-${row.name}`)
  }
}

/** Deploys again what was deployed, where it has drifted: the sandbox, then the components. */
export async function reconcileAll(org: string, data: InstallOverview, idempotency: string) {
  const drifted = data.components.filter((row) => row.drift === 'drifted').map((row) => row.name)
  if (data.sandbox?.drift === 'drifted') await start(org, data.install.id, { type: 'reprovision_sandbox', skip_components: true, deployed: true }, `${idempotency}-sandbox`)
  if (drifted.length > 0) await start(org, data.install.id, { type: 'deploy_components', components: drifted, deployed: true }, `${idempotency}-components`)
}

export const hasDrifted = (data: InstallOverview): boolean => data.sandbox?.drift === 'drifted' || data.components.some((row) => row.drift === 'drifted')

export const startedRun = (result: unknown): string => (typeof result === 'object' && result !== null && 'workflow_id' in result ? String(result.workflow_id) : '')
