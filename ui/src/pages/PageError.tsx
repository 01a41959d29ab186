import { asFailure } from '../api/client'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { Failure } from '../base/Failure'
import { failureInfo } from '../parts/Loaded'

/** A page that broke: its chunk is gone after an update, or it has a defect. */
export function PageError({ error }: ErrorComponentProps) {
  const chunk = /dynamically imported module|Importing a module/.test(asFailure(error).message)
  const info = chunk ? { message: 'This page could not be loaded.', hint: 'The server was updated, or is away. Load the page again.' } : failureInfo(error)
  return (
    <div style={{ padding: 24 }}>
      <Failure error={info} onRetry={() => location.reload()} />
    </div>
  )
}
