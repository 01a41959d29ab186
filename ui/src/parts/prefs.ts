/** What a person prefers in this browser: theme, time zone, single-key shortcuts. */
import { useSyncExternalStore } from 'react'
import type { Zone } from '../lib/time'

export type Theme = 'system' | 'dark' | 'light'

export interface Prefs {
  theme: Theme
  zone: Zone
  shortcuts: boolean
  wrap: boolean
  times: boolean
}

const KEY = 'ferry-prefs'
const fallback: Prefs = { theme: 'system', zone: 'local', shortcuts: true, wrap: false, times: true }

function read(): Prefs {
  try {
    return { ...fallback, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Prefs>) }
  } catch {
    return fallback
  }
}

let prefs = read()
const listeners = new Set<() => void>()
const dark = window.matchMedia?.('(prefers-color-scheme: dark)')

/** Puts the theme on the document. */
export function applyTheme() {
  const system = dark?.matches === false ? 'light' : 'dark'
  document.documentElement.dataset.theme = prefs.theme === 'system' ? system : prefs.theme
}

dark?.addEventListener('change', applyTheme)

export function setPrefs(next: Partial<Prefs>) {
  prefs = { ...prefs, ...next }
  try {
    localStorage.setItem(KEY, JSON.stringify(prefs))
  } catch {
    // A browser without storage forgets them; nothing else depends on it.
  }
  applyTheme()
  for (const it of listeners) it()
}

export function usePrefs(): Prefs {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => prefs,
  )
}

/** Things that were looked at lately, per org, newest first. */
export interface Recent {
  to: string
  name: string
  kind: string
}

export function recent(org: string): Recent[] {
  try {
    return JSON.parse(localStorage.getItem(`ferry-recent-${org}`) ?? '[]') as Recent[]
  } catch {
    return []
  }
}

export function remember(org: string, entry: Recent) {
  const all = [entry, ...recent(org).filter((it) => it.to !== entry.to)].slice(0, 8)
  try {
    localStorage.setItem(`ferry-recent-${org}`, JSON.stringify(all))
  } catch {
    // As above.
  }
}
