/** Single-key shortcuts. They never fire in fields or with a modifier, and people can switch them off. */

export interface Shortcut {
  keys: string
  does: string
  run: () => void
  /** Also with modifiers or in fields: only for Ctrl-K. */
  always?: boolean
}

interface Press {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  target: EventTarget | null
}

/** Whether what is typed belongs to a field. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false
  const field = target.closest('input, textarea, select, [contenteditable]')
  if (!field) return false
  if (field instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit', 'reset', 'range', 'file'].includes(field.type)
  return field.getAttribute('contenteditable') !== 'false'
}

/** The shortcut of a key press: `a`, `A`, `?`, `Escape`, `mod+k`, or a sequence such as `g f`. */
export function matchKey(press: Press, shortcuts: Shortcut[], enabled: boolean, before = ''): Shortcut | undefined {
  const mod = press.ctrlKey || press.metaKey
  if (mod && !press.altKey) {
    const name = `mod+${press.key.toLowerCase()}`
    return shortcuts.find((it) => it.keys === name)
  }
  if (mod || press.altKey) return undefined
  if (press.key !== 'Escape' && (!enabled || isTyping(press.target))) return undefined
  const sequence = before ? shortcuts.find((it) => it.keys === `${before} ${press.key}`) : undefined
  return sequence ?? shortcuts.find((it) => it.keys === press.key)
}

/** Whether a key may begin a sequence. */
export const beginsSequence = (key: string, shortcuts: Shortcut[]): boolean => shortcuts.some((it) => it.keys.startsWith(`${key} `))
