/** The tab's stream for the org, and what the header and Approve need to know of it. */
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from 'react'
import { Invalidator } from '../api/invalidate'
import { Live, type LiveState } from '../api/live'
import { session } from '../api/queries'

const LiveContext = createContext<Live | undefined>(undefined)

export function LiveProvider({ org, children }: { org: string; children: ReactNode }) {
  const client = useQueryClient()
  const [live, setLive] = useState<Live>()
  useEffect(() => {
    const invalidator = new Invalidator(client, org)
    const mine = new Live(org, {
      note: (note) => invalidator.note(note),
      reset: () => invalidator.reset(),
      refused: () => void client.fetchQuery({ ...session, staleTime: 0 }).catch(() => {}),
    })
    mine.start()
    setLive(mine)
    return () => {
      mine.stop()
      invalidator.stop()
      setLive(undefined)
    }
  }, [client, org])
  return <LiveContext value={live}>{children}</LiveContext>
}

const connecting: LiveState = { is: 'connecting' }
const nothing = () => () => {}

export const useLive = () => useContext(LiveContext)

export function useLiveState(): LiveState {
  const live = useLive()
  return useSyncExternalStore(live ? live.subscribe : nothing, live ? live.current : () => connecting)
}
