import { type ReactNode, useEffect, useState } from 'react'
import styles from './Filters.module.css'

export function Filters({ children }: { children: ReactNode }) {
  return (
    <div className={styles.bar} role="search">
      {children}
    </div>
  )
}

/** A field that waits for the end of a word before it asks the server. */
export function Search({ label, value = '', onChange, id }: { label: string; value?: string | undefined; onChange: (value: string) => void; id?: string }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), 250)
    return () => clearTimeout(timer)
  }, [text])
  return <input id={id} type="search" dir="auto" className={styles.input} aria-label={label} placeholder={label} value={text} onChange={(event) => setText(event.target.value)} autoComplete="off" spellCheck={false} />
}

export function Pick({ label, value = '', options, onChange }: { label: string; value?: string | undefined; options: { value: string; name: string }[]; onChange: (value: string) => void }) {
  return (
    <select className={value ? `${styles.input} ${styles.chosen}` : styles.input} aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{label}: all</option>
      {value && !options.some((it) => it.value === value) && <option value={value}>{value}</option>}
      {options.map((it) => (
        <option key={it.value} value={it.value}>
          {it.name}
        </option>
      ))}
    </select>
  )
}
