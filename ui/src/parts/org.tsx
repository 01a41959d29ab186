/** The org of the page: its id for requests, its slug for addresses, and what the person may do there. */
import { createContext, useContext } from 'react'
import type { Cans, CurrentSession, OrgFrame, RoleName } from '../api/types'
import { type Paths } from './paths'

export interface OrgHere {
  id: string
  slug: string
  name: string
  role: RoleName
  session: CurrentSession
  frame: OrgFrame | undefined
  to: Paths
}

export const OrgContext = createContext<OrgHere | undefined>(undefined)

export function useOrg(): OrgHere {
  const org = useContext(OrgContext)
  if (!org) throw new Error('this page needs an org')
  return org
}

const order: RoleName[] = ['read-only', 'approver', 'operator', 'admin']

/** Why the person's role does not allow it; `undefined` if it does. */
export function useNeeds(role: RoleName): string | undefined {
  const mine = useOrg().role
  return order.indexOf(mine) >= order.indexOf(role) ? undefined : `You are ${mine}; this needs the role ${role}.`
}

/** Why the server says that it can't be done; what it does not mention is left to it. */
export function cannot(can: Cans | undefined, name: string): string | undefined {
  const found = can?.[name]
  return found && !found.ok ? found.reason || 'This is not possible now.' : undefined
}
