import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button } from './Button'
import { Icon } from './Icon'
import styles from './Menu.module.css'

export interface MenuItem {
  key: string
  label: ReactNode
  note?: ReactNode
  /** A heading before this item. */
  group?: string
  danger?: boolean
  checked?: boolean
  reason?: string | undefined
  href?: string
  onSelect?: () => void
}

interface Props {
  label: ReactNode
  name?: string
  items: MenuItem[]
  kind?: 'plain' | 'primary' | 'quiet'
  small?: boolean
  className?: string | undefined
  /** No arrow beside the label. */
  bare?: boolean
}

/** A menu button after the ARIA pattern: arrows, Home, End, first letters, Escape; the focus returns to the button. */
export function Menu({ label, name, items, kind = 'plain', small, className, bare }: Props) {
  const [open, setOpen] = useState(false)
  const [end, setEnd] = useState(false)
  const [flip, setFlip] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()

  const entries = () => [...(list.current?.querySelectorAll<HTMLElement>('[role^=menuitem]') ?? [])]
  const close = (focus = true) => {
    setOpen(false)
    if (focus) root.current?.querySelector('button')?.focus()
  }

  useEffect(() => {
    if (!open) return
    const box = list.current?.getBoundingClientRect()
    if (box) {
      setEnd(box.right > document.documentElement.clientWidth - 8)
      setFlip(box.bottom > window.innerHeight - 8 && box.height < (root.current?.getBoundingClientRect().top ?? 0))
    }
    entries()[0]?.focus()
    const outside = (event: PointerEvent) => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false)
    }
    document.addEventListener('pointerdown', outside)
    return () => {
      document.removeEventListener('pointerdown', outside)
      setEnd(false)
      setFlip(false)
    }
  }, [open])

  const onKeyDown = (event: KeyboardEvent) => {
    if (!open) {
      if (event.key === 'ArrowDown') {
        event.preventDefault()
        setOpen(true)
      }
      return
    }
    event.stopPropagation()
    const all = entries()
    const at = all.indexOf(document.activeElement as HTMLElement)
    const go = (to: number) => {
      event.preventDefault()
      all[(to + all.length) % all.length]?.focus()
    }
    if (event.key === 'ArrowDown') go(at + 1)
    else if (event.key === 'ArrowUp') go(at - 1)
    else if (event.key === 'Home') go(0)
    else if (event.key === 'End') go(-1)
    else if (event.key === 'Escape') {
      event.preventDefault()
      close()
    } else if (event.key === 'Tab') setOpen(false)
    else if (event.key.length === 1 && /\S/.test(event.key)) {
      const letter = event.key.toLowerCase()
      const order = [...all.slice(at + 1), ...all.slice(0, at + 1)]
      order.find((it) => it.textContent?.trim().toLowerCase().startsWith(letter))?.focus()
    }
  }

  return (
    <div className={className ? `${styles.root} ${className}` : styles.root} ref={root} onKeyDown={onKeyDown}>
      <Button kind={kind} small={small ?? false} aria-haspopup="menu" aria-expanded={open} aria-controls={open ? id : undefined} aria-label={name} onClick={() => setOpen(!open)}>
        {label}
        {!bare && <Icon name="down" size={12} />}
      </Button>
      {open && (
        <div ref={list} id={id} role="menu" className={[styles.list, end && styles.end, flip && styles.flip].filter(Boolean).join(' ')}>
          {items.map((item) => (
            <Entry key={item.key} item={item} close={close} />
          ))}
        </div>
      )}
    </div>
  )
}

function Entry({ item, close }: { item: MenuItem; close: (focus?: boolean) => void }) {
  const common = {
    className: item.danger ? `${styles.item} ${styles.danger}` : styles.item,
    role: item.checked === undefined ? 'menuitem' : 'menuitemradio',
    'aria-checked': item.checked,
    tabIndex: -1,
    'aria-disabled': item.reason !== undefined || undefined,
    title: item.reason,
  }
  const inside = (
    <>
      <span className={styles.label}>
        {item.checked !== undefined && <span className={styles.mark}>{item.checked && <Icon name="check" size={12} />}</span>}
        {item.label}
      </span>
      {(item.reason ?? item.note) && <span className={styles.note}>{item.reason ?? item.note}</span>}
    </>
  )
  return (
    <>
      {item.group && (
        <div role="presentation" className={styles.group}>
          {item.group}
        </div>
      )}
      {item.href ? (
        <a {...common} href={item.href}>
          {inside}
        </a>
      ) : (
        <button
          {...common}
          type="button"
          onClick={() => {
            if (item.reason !== undefined) return
            close()
            item.onSelect?.()
          }}
        >
          {inside}
        </button>
      )}
    </>
  )
}
