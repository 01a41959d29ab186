/** Toasts say only that something you began has ended. */
import { useSyncExternalStore } from 'react'
import { Icon } from '../base/Icon'
import styles from './toasts.module.css'

interface Toast {
  id: number
  text: string
}

let toasts: Toast[] = []
let next = 1
const listeners = new Set<() => void>()
const set = (value: Toast[]) => {
  toasts = value
  for (const it of listeners) it()
}

export function toast(text: string) {
  const id = next++
  set([...toasts.slice(-2), { id, text }])
  setTimeout(() => dismiss(id), 6000)
}

const dismiss = (id: number) => set(toasts.filter((it) => it.id !== id))

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <div className={styles.area} role="status" aria-live="polite">
      {shown.map((it) => (
        <div key={it.id} className={styles.toast}>
          <span dir="auto">{it.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(it.id)}>
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  )
}
