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

export const startedRun = (result: unknown): string => (typeof result === 'object' && result !== null && 'workflow_id' in result ? String(result.workflow_id) : '')
