/** Single-key shortcuts: every page lists its own, one listener serves them all. */
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { beginsSequence, matchKey, type Shortcut } from '../lib/keys'
import { usePrefs } from './prefs'

type Group = { current: Shortcut[] }

let groups: Group[] = []
const listeners = new Set<() => void>()
let flat: Shortcut[] = []

function changed() {
  // A page's keys come before those of the frame around it.
  flat = groups.toReversed().flatMap((it) => it.current)
  for (const it of listeners) it()
}

/** Adds shortcuts for as long as the component is there. */
export function useShortcuts(shortcuts: Shortcut[]) {
  const group = useRef<Shortcut[]>(shortcuts)
  group.current = shortcuts
  const names = shortcuts.map((it) => `${it.keys}:${it.does}`).join('|')
  useEffect(() => {
    const mine: Group = group
    groups = [...groups, mine]
    changed()
    return () => {
      groups = groups.filter((it) => it !== mine)
      changed()
    }
  }, [names])
}

/** What `?` and the palette list. */
export function useAllShortcuts(): Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => flat,
  )
}

/** The listener; once, in the frame. */
export function useShortcutKeys() {
  const { shortcuts: enabled } = usePrefs()
  useEffect(() => {
    let before = ''
    let timer: ReturnType<typeof setTimeout> | undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return
      const all = groups.toReversed().flatMap((it) => it.current)
      const found = matchKey(event, all, enabled, before)
      clearTimeout(timer)
      if (found) {
        before = ''
        event.preventDefault()
        found.run()
      } else if (enabled && !event.ctrlKey && !event.metaKey && !event.altKey && beginsSequence(event.key, all)) {
        before = event.key
        timer = setTimeout(() => {
          before = ''
        }, 1000)
      } else before = ''
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [enabled])
}
