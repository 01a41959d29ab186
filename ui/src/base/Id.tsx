import { useEffect, useState } from 'react'
import { shortId } from '../lib/format'
import { Icon } from './Icon'
import styles from './Id.module.css'

/** Copies a text and says so for two seconds. */
export function useCopy(): [boolean, (text: string) => void] {
  const [copied, setCopied] = useState(0)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(0), 2000)
    return () => clearTimeout(timer)
  }, [copied])
  return [
    copied > 0,
    (text) => {
      void navigator.clipboard?.writeText(text).then(
        () => setCopied(Date.now()),
        () => {},
      )
    },
  ]
}

/** The last six characters of an id; it copies the whole. */
export function Id({ id, what = 'id' }: { id: string; what?: string }) {
  const [copied, copy] = useCopy()
  return (
    <button type="button" className={styles.id} title={id} aria-label={`Copy ${what} ${id}`} onClick={() => copy(id)}>
      {copied ? 'copied' : shortId(id)}
      <span role="status" className="visually-hidden">
        {copied ? 'Copied' : ''}
      </span>
    </button>
  )
}

/** A command for a terminal, to copy. */
export function Command({ text }: { text: string }) {
  const [copied, copy] = useCopy()
  return (
    <span className={styles.command}>
      <code>{text}</code>
      <button type="button" className={styles.copy} aria-label={`Copy command ${text}`} onClick={() => copy(text)}>
        <Icon name={copied ? 'check' : 'copy'} size={12} />
      </button>
      <span role="status" className="visually-hidden">
        {copied ? 'Copied' : ''}
      </span>
    </span>
  )
}
