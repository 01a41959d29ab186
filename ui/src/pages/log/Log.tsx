import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { job as jobQuery, outline } from '../../api/queries'
import type { Job } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Note } from '../../base/Failure'
import { Id } from '../../base/Id'
import { Took } from '../../base/Time'
import { words } from '../../lib/format'
import { isOpen } from '../../lib/status'
import { Confirm } from '../../parts/act'
import { Loaded } from '../../parts/Loaded'
import { LogView } from '../../parts/logview/LogView'
import { useNeeds, useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { Settle } from '../run/StepHead'

/** What did it print? */
export function Log() {
  const org = useOrg()
  const { job = '' } = useParams({ strict: false })
  const query = useQuery(jobQuery(org.id, job))
  return <Loaded query={query}>{(it) => <Shown key={it.id} job={it} />}</Loaded>
}

function Shown({ job }: { job: Job }) {
  const org = useOrg()
  const operator = useNeeds('operator')
  const [asking, setAsking] = useState<'cancel' | 'settle'>()
  const query = useQuery(outline(org.id, job.log_stream_id))
  const it = query.data
  const title = words(it?.job_name || job.name || job.type)
  const crumbs = [
    ...(job.install_id ? [{ to: org.to.install(job.install_id), name: it?.install_name || 'install' }] : []),
    ...(it?.workflow_id ? [{ to: org.to.run(it.workflow_id, it.step_id), name: 'run' }] : []),
  ]
  return (
    <Page
      title={title}
      name={`Log of ${title}`}
      crumbs={crumbs}
      command={`ferry logs ${job.id}`}
      chips={
        <>
          <Chip status={job.status} kind="job" />
          <span className="muted">
            <Took from={job.started_at} to={job.finished_at ?? (isOpen(job.status) ? undefined : job.updated_at)} />
          </span>
          <Id id={job.id} what="job id" />
        </>
      }
      actions={
        <>
          {isOpen(job.status) && (
            <Button reason={operator} onClick={() => setAsking('cancel')}>
              Cancel
            </Button>
          )}
          {job.status === 'unknown' && (
            <Button reason={operator} onClick={() => setAsking('settle')}>
              Settle
            </Button>
          )}
        </>
      }
    >
      {job.waiting_reason && isOpen(job.status) && <Note role="neutral">{job.waiting_reason}</Note>}
      {job.status === 'unknown' && <Note role="odd">Nobody knows how this job ended. Look at what it changed, then record the outcome.</Note>}
      {job.error && (
        <Note role="bad">
          <span dir="auto">{job.error.message}</span> <code>{job.error.code}</code>
        </Note>
      )}
      <LogView log={job.log_stream_id} page />
      <Confirm open={asking === 'cancel'} onClose={() => setAsking(undefined)} title="Cancel this job?" label="Cancel the job" danger reason={operator} perform={(key) => post(path`/v1/runner-jobs/${job.id}/cancel`, { org: org.id, idempotency: key })}>
        <p>A running job is interrupted. What it changed stays.</p>
      </Confirm>
      <Settle job={job.id} open={asking === 'settle'} onClose={() => setAsking(undefined)} />
    </Page>
  )
}
