import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from 'react'
import styles from './Field.module.css'

interface Label {
  label: ReactNode
  hint?: ReactNode
  error?: string | undefined
  hidden?: boolean
}

function Frame({ id, label, hint, error, hidden, children }: Label & { id: string; children: ReactNode }) {
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={hidden ? 'visually-hidden' : styles.label}>
        {label}
      </label>
      {children}
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} className={styles.error} role="alert">
          {error}
        </p>
      )}
    </div>
  )
}

const about = (id: string, hint: ReactNode, error: string | undefined) =>
  ({ 'aria-describedby': [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ') || undefined, 'aria-invalid': error ? true : undefined }) as const

export function TextField({ label, hint, error, hidden, className, autoFocus, ...rest }: Label & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId()
  return (
    <Frame id={id} {...{ label, hint, error, hidden }}>
      <input {...rest} {...about(id, hint, error)} id={id} data-autofocus={autoFocus || undefined} dir="auto" className={[styles.input, className].filter(Boolean).join(' ')} />
    </Frame>
  )
}

export function TextArea({ label, hint, error, hidden, autoFocus, ...rest }: Label & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId()
  return (
    <Frame id={id} {...{ label, hint, error, hidden }}>
      <textarea rows={3} {...rest} {...about(id, hint, error)} id={id} data-autofocus={autoFocus || undefined} dir="auto" className={styles.input} />
    </Frame>
  )
}

export function SelectField({ label, hint, error, hidden, children, className, ...rest }: Label & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId()
  return (
    <Frame id={id} {...{ label, hint, error, hidden }}>
      <select {...rest} {...about(id, hint, error)} id={id} className={[styles.input, className].filter(Boolean).join(' ')}>
        {children}
      </select>
    </Frame>
  )
}

export function Check({ label, hint, ...rest }: { label: ReactNode; hint?: ReactNode } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId()
  return (
    <div className={styles.check}>
      <input {...rest} id={id} type="checkbox" aria-describedby={hint ? `${id}-hint` : undefined} />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <p id={`${id}-hint`} className={styles.hint}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
