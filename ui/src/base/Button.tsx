import { type ButtonHTMLAttributes, type ReactNode, useId } from 'react'
import styles from './Button.module.css'

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled' | 'title'> {
  kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  small?: boolean
  /** Why it can't be used now: it stays visible and focusable, and says so. */
  reason?: string | undefined
  busy?: boolean
  children: ReactNode
}

/** A button that is never only greyed out: a disabled one can be focused, and its reason is read out and shown. */
export function Button({ kind = 'plain', small, reason, busy, children, onClick, className, autoFocus, ...rest }: ButtonProps) {
  const id = useId()
  const off = reason !== undefined || busy === true
  const name = [styles.button, styles[kind], small && styles.small, className].filter(Boolean).join(' ')
  return (
    <>
      <button
        type="button"
        {...rest}
        className={name}
        data-autofocus={autoFocus || undefined}
        aria-disabled={off || undefined}
        aria-busy={busy || undefined}
        aria-describedby={reason ? id : rest['aria-describedby']}
        title={reason}
        onClick={(event) => {
          if (off) event.preventDefault()
          else onClick?.(event)
        }}
      >
        {children}
      </button>
      {reason !== undefined && (
        <span id={id} className="visually-hidden">
          {reason}
        </span>
      )}
    </>
  )
}
