/** Doing something: busy while it runs, its error where it was started. */
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useRef, useState } from 'react'
import { type ApiFailure, asFailure, newKey } from '../api/client'
import { Button, type ButtonProps } from '../base/Button'
import { Dialog } from '../base/Dialog'
import { Failure } from '../base/Failure'
import { TextField } from '../base/Field'
import { failureInfo } from './Loaded'
import { useOrg } from './org'
import { toast } from './toasts'

export type Perform<T = unknown> = (key: string) => Promise<T>

/** Runs something once at a time, with one idempotency key until it succeeds. */
export function useAct() {
  const org = useOrg()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiFailure>()
  const key = useRef(newKey())
  const running = useRef(false)

  async function run<T>(perform: Perform<T>, done?: string): Promise<T | undefined> {
    if (running.current) return undefined
    running.current = true
    setBusy(true)
    setError(undefined)
    try {
      const result = await perform(key.current)
      key.current = newKey()
      if (done) toast(done)
      void client.invalidateQueries({ predicate: (query) => query.queryKey[0] === org.id })
      return result === undefined ? (true as T) : result
    } catch (caught) {
      const failed = asFailure(caught)
      // Another body may follow: the server would refuse the same key for it.
      if (failed.status >= 400 && failed.status < 500) key.current = newKey()
      setError(failed)
      return undefined
    } finally {
      running.current = false
      setBusy(false)
    }
  }
  return { run, busy, error, clear: () => setError(undefined) }
}

/** A button that does one thing at once. */
export function Act({ perform, done, then, children, ...rest }: Omit<ButtonProps, 'onClick'> & { perform: Perform; done?: string; then?: (result: unknown) => void }) {
  const act = useAct()
  return (
    <>
      <Button
        {...rest}
        busy={act.busy}
        onClick={() => {
          void act.run(perform, done).then((result) => {
            if (result !== undefined) then?.(result)
          })
        }}
      >
        {children}
      </Button>
      {act.error && <Failure error={failureInfo(act.error)} />}
    </>
  )
}

interface ConfirmProps {
  open: boolean
  onClose: () => void
  title: ReactNode
  children?: ReactNode
  /** What the button says. */
  label: string
  danger?: boolean
  /** A name that has to be typed: for what can't be undone. */
  word?: string | undefined
  reason?: string | undefined
  wide?: boolean
  perform: Perform
  done?: string | undefined
  then?: (result: unknown) => void
}

/** Asks before something is done. The focus begins at Cancel, or in the field for the name. */
export function Confirm({ open, onClose, title, children, label, danger, word, reason, wide, perform, done, then }: ConfirmProps) {
  const act = useAct()
  const [typed, setTyped] = useState('')
  const form = useRef<HTMLFormElement>(null)
  const close = () => {
    setTyped('')
    act.clear()
    onClose()
  }
  const missing = word !== undefined && typed.trim() !== word ? `Type ${word} first.` : undefined
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    if (reason || missing || act.busy) return
    void act.run(perform, done).then((result) => {
      if (result === undefined) return
      close()
      then?.(result)
    })
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      title={title}
      wide={wide ?? false}
      actions={
        <>
          <Button autoFocus={word === undefined} onClick={close}>
            Cancel
          </Button>
          <Button kind={danger ? 'danger' : 'primary'} busy={act.busy} reason={reason ?? missing} onClick={() => submit()}>
            {label}
          </Button>
        </>
      }
    >
      <form ref={form} onSubmit={submit} className="stack">
        {children}
        {word !== undefined && (
          <TextField
            autoFocus
            label={
              <>
                Type <code dir="auto">{word}</code> to confirm
              </>
            }
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            autoComplete="off"
            spellCheck={false}
          />
        )}
        {act.error && <Failure error={failureInfo(act.error)} />}
      </form>
    </Dialog>
  )
}
