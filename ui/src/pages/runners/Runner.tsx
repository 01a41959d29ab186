import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { patch, path, post } from '../../api/client'
import { jobs, runner as runnerQuery } from '../../api/queries'
import type { Job, Runner as RunnerData } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty, Note } from '../../base/Failure'
import { TextField } from '../../base/Field'
import { Id } from '../../base/Id'
import { Time } from '../../base/Time'
import { bytes } from '../../lib/format'
import { duration } from '../../lib/time'
import { Act, Confirm } from '../../parts/act'
import { Loaded, LoadedList } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Facts, Page, Section } from '../../parts/Page'
import { remember } from '../../parts/prefs'
import { To, useGo } from '../../parts/To'
import { Values } from '../../parts/Values'
import { JobTable } from '../log/Jobs'
import { JoinCommandButton } from './JoinCommandButton'
import { runnerStatus } from './Runners'

/** Can it work? When was it seen, what does it do, what waits for it? */
export function Runner() {
  const org = useOrg()
  const { runner = '' } = useParams({ strict: false })
  const query = useQuery(runnerQuery(org.id, runner))
  return (
    <Loaded query={query} missing={<Empty action={<To to={org.to.runners}>All runners</To>}>There is no such runner in this org.</Empty>}>
      {(it) => <Shown it={it} />}
    </Loaded>
  )
}

function Shown({ it }: { it: RunnerData }) {
  const org = useOrg()
  const go = useGo()
  const operator = useNeeds('operator')
  const admin = useNeeds('admin')
  const [ask, setAsk] = useState<'drain' | 'revoke' | 'settings'>()
  const waiting = useInfiniteQuery(jobs(org.id, { runner: it.id, limit: 25 }))
  useEffect(() => remember(org.id, { to: org.to.runner(it.id), name: it.name, kind: 'runner' }), [org, it.id, it.name])
  const report = it.report
  const low = report && report.disk_floor_bytes && report.disk_free_bytes < report.disk_floor_bytes
  return (
    <Page
      title={it.name}
      crumbs={[{ to: org.to.runners, name: 'Runners' }]}
      command={`ferry runners get ${it.name}`}
      chips={
        <>
          <Chip status={runnerStatus(it)} kind="runner" />
          {it.last_seen_at && (
            <span className="muted">
              seen <Time at={it.last_seen_at} />
            </span>
          )}
          <Id id={it.id} what="runner id" />
        </>
      }
      actions={
        <>
          <JoinCommandButton runner={it.id} />
          {it.draining ? (
            <Act reason={operator} perform={(key) => post(path`/v1/runners/${it.id}/resume`, { org: org.id, idempotency: key })}>
              Resume
            </Act>
          ) : (
            <Button reason={operator} onClick={() => setAsk('drain')}>
              Drain
            </Button>
          )}
          <Act reason={operator} perform={(key) => post<Job>(path`/v1/runners/${it.id}/jobs`, { org: org.id, body: { type: 'health-check' }, idempotency: key })} then={(job) => go(org.to.job((job as Job).id))}>
            Check health
          </Act>
          <Button reason={admin} onClick={() => setAsk('settings')}>
            Settings
          </Button>
          <Button reason={admin} onClick={() => setAsk('revoke')}>
            Revoke
          </Button>
        </>
      }
    >
      {it.status_description && it.status !== 'active' && <Note role="warn"><span dir="auto">{it.status_description}</span></Note>}
      {report?.disabled_since && (
        <Note role="warn">
          The customer has switched this runner off <Time at={report.disabled_since} />. Only the customer can switch it on again.
        </Note>
      )}
      {low && <Note role="warn">Its disk is full: {bytes(report.disk_free_bytes)} free, it takes no jobs below {bytes(report.disk_floor_bytes ?? 0)}.</Note>}
      <Facts
        facts={[
          ['Kind', it.kind],
          ['Install', it.install_id && <To key="i" to={org.to.install(it.install_id)}><bdi>{it.name}</bdi></To>],
          ['Host', report && <bdi key="h">{report.hostname}</bdi>],
          ['Version', report?.version],
          ['Generation', it.generation],
          ['Free disk', report && bytes(report.disk_free_bytes)],
          ['Slots', Object.entries(report?.slots ?? it.settings.groups).map(([group, n]) => `${group} ${n}`).join(', ')],
          ['Works at', Object.entries(report?.busy ?? {}).flatMap(([group, ids]) => ids.map((id) => <To key={id} to={org.to.job(id)}>{group} </To>))],
          ['Ad-hoc commands', report?.no_ad_hoc ? 'forbidden by the customer' : 'allowed'],
          ['Drain time', duration(it.settings.drain_s * 1000)],
          ['Registry', report?.registry],
        ]}
      />
      {it.health && (
        <Section title={<>Health, <Time at={it.health.checked_at} /></>}>
          <Values values={it.health.outputs as Record<string, unknown>} />
        </Section>
      )}
      <Section title="Jobs" actions={<To to={`${org.to.jobs}?runner=${encodeURIComponent(it.id)}`}>All</To>}>
        <LoadedList query={waiting} empty={<p className="muted">It has had no jobs yet.</p>}>
          {(rows) => <JobTable rows={rows} />}
        </LoadedList>
      </Section>
      <Confirm open={ask === 'drain'} onClose={() => setAsk(undefined)} title={`Drain ${it.name}?`} label="Drain" reason={operator} perform={(key) => post(path`/v1/runners/${it.id}/drain`, { org: org.id, idempotency: key })}>
        <p>It finishes what it works at and takes no new jobs until you resume it.</p>
      </Confirm>
      <Confirm open={ask === 'revoke'} onClose={() => setAsk(undefined)} title={`Revoke ${it.name}?`} label="Revoke" danger word={it.name} reason={admin} perform={(key) => post(path`/v1/runners/${it.id}/revoke`, { org: org.id, idempotency: key })}>
        <p>Its credentials stop working at once. A new join command starts it again.</p>
      </Confirm>
      {ask === 'settings' && <Settings it={it} onClose={() => setAsk(undefined)} />}
    </Page>
  )
}

const GiB = 1024 ** 3

function Settings({ it, onClose }: { it: RunnerData; onClose: () => void }) {
  const org = useOrg()
  const admin = useNeeds('admin')
  const [groups, setGroups] = useState<Record<string, number>>(it.settings.groups)
  const [floor, setFloor] = useState(String(it.settings.disk_floor_bytes / GiB))
  const [disk, setDisk] = useState(String(it.settings.execution_disk_bytes / GiB))
  const [spool, setSpool] = useState(String(it.settings.spool_bytes / GiB))
  const [drain, setDrain] = useState(String(it.settings.drain_s))
  const [check, setCheck] = useState(String(it.settings.health_check_s))
  const number = (text: string, scale = 1) => Math.round(Number(text) * scale)
  const bad = [floor, disk, spool, drain, check].some((text) => text.trim() === '' || !Number.isFinite(Number(text)) || Number(text) < 0)
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Settings of ${it.name}`}
      label="Save"
      reason={admin ?? (bad ? 'Every field needs a number.' : undefined)}
      perform={() =>
        patch(path`/v1/runners/${it.id}/settings`, {
          org: org.id,
          body: { groups, disk_floor_bytes: number(floor, GiB), execution_disk_bytes: number(disk, GiB), spool_bytes: number(spool, GiB), drain_s: number(drain), health_check_s: number(check) },
        })
      }
      done="Settings saved"
    >
      {Object.entries(groups).map(([group, slots]) => (
        <TextField key={group} label={`Jobs of ${group} at a time`} type="number" min={0} value={slots} onChange={(event) => setGroups({ ...groups, [group]: Number(event.target.value) })} />
      ))}
      <TextField label="Takes no jobs below, GiB of free disk" type="number" min={0} step="any" value={floor} onChange={(event) => setFloor(event.target.value)} />
      <TextField label="Disk of one job, GiB" type="number" min={0} step="any" value={disk} onChange={(event) => setDisk(event.target.value)} />
      <TextField label="Log spool, GiB" type="number" min={0} step="any" value={spool} onChange={(event) => setSpool(event.target.value)} />
      <TextField label="Drain time, seconds" type="number" min={0} value={drain} onChange={(event) => setDrain(event.target.value)} />
      <TextField label="Health check every, seconds" type="number" min={0} value={check} onChange={(event) => setCheck(event.target.value)} />
    </Confirm>
  )
}
