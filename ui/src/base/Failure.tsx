import type { ReactNode } from 'react'
import { Button } from './Button'
import styles from './Failure.module.css'
import { Icon } from './Icon'
import { Command } from './Id'

export interface FailureInfo {
  message: string
  hint?: string | undefined
  code?: string | undefined
  docs?: string | undefined
  requestId?: string | undefined
}

/** What failed, in the place where it failed. */
export function Failure({ error, onRetry, children }: { error: FailureInfo; onRetry?: (() => void) | undefined; children?: ReactNode }) {
  return (
    <div role="alert" className={styles.box}>
      <span className={styles.icon}>
        <Icon name="cross" />
      </span>
      <div className={styles.text}>
        <p dir="auto">{error.message}</p>
        {error.hint && (
          <p className="muted" dir="auto">
            {error.hint}
          </p>
        )}
        {(error.code || error.requestId) && (
          <p className="muted small">
            {error.code && (error.docs ? <a href={error.docs} target="_blank" rel="noreferrer">{error.code}</a> : <code>{error.code}</code>)}
            {error.requestId && <> request {error.requestId}</>}
          </p>
        )}
        {children}
        {onRetry && (
          <div>
            <Button small onClick={onRetry}>
              Retry
            </Button>
          </div>
        )}
      </div>
    </div>
  )
}

/** Nothing is here: one sentence, and what to do about it. */
export function Empty({ children, command, action }: { children: ReactNode; command?: string; action?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p>{children}</p>
      {command && <Command text={command} />}
      {action}
    </div>
  )
}

/** A remark that concerns the whole block below it. */
export function Note({ role = 'info', children }: { role?: 'info' | 'warn' | 'bad' | 'ask' | 'odd' | 'neutral'; children: ReactNode }) {
  return <div className={`${styles.note} ${styles[role]}`}>{children}</div>
}
