import { useQuery } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { session } from '../api/queries'
import type { CurrentSession } from '../api/types'
import { Empty } from '../base/Failure'
import { Loaded } from '../parts/Loaded'
import { split } from '../parts/To'
import { paths } from '../parts/paths'

const LAST = 'ferry-org'

export const slugOf = (session: CurrentSession, id: string): string => {
  const org = session.orgs.find((it) => it.id === id)
  const unique = org && session.orgs.filter((it) => it.name === org.name).length === 1
  return unique ? org.name : id
}

export function rememberOrg(id: string) {
  try {
    localStorage.setItem(LAST, id)
  } catch {
    // Without storage the first org opens next time.
  }
}

function lastOrg(): string | null {
  try {
    return localStorage.getItem(LAST)
  } catch {
    return null
  }
}

/** The org that was open last, or the first. */
export function Home() {
  const query = useQuery(session)
  return (
    <Loaded query={query}>
      {(known) => {
        const org = known.orgs.find((it) => it.id === lastOrg()) ?? known.orgs[0]
        if (org) return <Navigate {...split(paths(slugOf(known, org.id)).fleet)} replace />
        return (
          <main className="stack" style={{ padding: 24 }}>
            <h1>No orgs</h1>
            <Empty command="ferry orgs create acme">
              {known.email} is not a member of any org. Create one, or ask an admin for an invite. <a href="/account">Your account</a>
            </Empty>
          </main>
        )
      }}
    </Loaded>
  )
}
