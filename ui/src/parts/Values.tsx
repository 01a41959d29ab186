import { useState } from 'react'
import { Button } from '../base/Button'
import { harmless } from '../lib/ansi'
import { valueText } from '../lib/format'
import styles from './Values.module.css'

/** Names and values of any shape, as text. */
export function Values({ values, empty = 'No values.' }: { values: Record<string, unknown> | undefined; empty?: string }) {
  const entries = Object.entries(values ?? {})
  if (entries.length === 0) return <p className="muted">{empty}</p>
  return (
    <dl className={styles.list}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <bdi>{name}</bdi>
          </dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

const LONG = 400

export function Value({ value }: { value: unknown }) {
  const [open, setOpen] = useState(false)
  if (value === null || value === undefined) return <span className="muted">none</span>
  // How the API writes what it does not show.
  if (typeof value === 'object' && 'sensitive' in value && (value as { sensitive?: unknown }).sensitive === true) return <span className="muted">hidden</span>
  const text = harmless(valueText(value, 2))
  const link = /^https?:\/\/\S+$/.test(text) && text.length < 500
  if (link) {
    return (
      <a href={text} target="_blank" rel="noreferrer noopener">
        <bdi>{text}</bdi>
      </a>
    )
  }
  const cut = text.length > LONG && !open
  return (
    <>
      <span className={styles.value}>
        <bdi>{cut ? `${text.slice(0, LONG)}…` : text}</bdi>
      </span>
      {cut && (
        <Button small kind="quiet" onClick={() => setOpen(true)}>
          Show all
        </Button>
      )}
    </>
  )
}
