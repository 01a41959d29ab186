import { createContext, useContext, useSyncExternalStore } from 'react'
import { absolute, duration, parseTime, relative, type Zone } from '../lib/time'

/** UTC or local: one setting for every page. */
export const ZoneContext = createContext<Zone>('local')

// One timer redraws every age; nothing else ticks.
const listeners = new Set<() => void>()
let current = Date.now()
let timer: ReturnType<typeof setInterval> | undefined
function subscribe(listener: () => void) {
  listeners.add(listener)
  timer ??= setInterval(() => {
    current = Date.now()
    for (const it of listeners) it()
  }, 1000)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }
}

/** The time now, redrawn every `step` seconds. */
export function useNow(step = 1): number {
  return useSyncExternalStore(subscribe, () => {
    if (timer === undefined) current = Date.now()
    return Math.floor(current / (step * 1000)) * step * 1000
  })
}

/** A moment as people say it; the absolute time is its tooltip and what a screen reader reads. */
export function Time({ at, exact }: { at: string | null | undefined; exact?: boolean }) {
  const zone = useContext(ZoneContext)
  const ms = parseTime(at)
  const now = useNow(ms !== undefined && Date.now() - ms < 120_000 ? 1 : 20)
  if (ms === undefined) return <span className="muted">never</span>
  const full = absolute(ms, zone)
  return (
    <time dateTime={at ?? ''} title={full} className="nowrap">
      {exact ? full : relative(ms, Math.max(now, ms > now ? now : ms))}
    </time>
  )
}

/** How long something took, or runs already. */
export function Took({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) {
  const begin = parseTime(from)
  const end = parseTime(to)
  const now = useNow(1)
  if (begin === undefined) return null
  return <span className="nowrap">{duration(Math.max(0, (end ?? Math.max(now, begin)) - begin))}</span>
}
