import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { versions } from '../../api/queries'
import type { InstallOverview } from '../../api/types'
import { Check, SelectField } from '../../base/Field'
import { Confirm } from '../../parts/act'
import { cannot, useOrg } from '../../parts/org'
import { useGo } from '../../parts/To'
import { start, startedRun } from './use-install'

/** Deploys an earlier version of the app; only components that differ change. */
export function Rollback({ data, onClose }: { data: InstallOverview; onClose: () => void }) {
  const org = useOrg()
  const go = useGo()
  const it = data.install
  const query = useInfiniteQuery(versions(org.id, it.app_id))
  const known = (query.data?.pages.flatMap((page) => page.data) ?? []).filter((config) => config.version !== undefined)
  // The newest that something was deployed from: parts may be at several versions.
  const newest = Math.max(0, ...data.components.map((row) => row.version ?? 0))
  const before = known.find((config) => (config.version ?? 0) < newest)
  const [chosen, setChosen] = useState('')
  const [planOnly, setPlanOnly] = useState(false)
  const version = chosen || String(before?.version ?? '')
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Roll ${it.name} back`}
      label={version ? `Deploy version ${version}` : 'Roll back'}
      reason={cannot(data.can, 'rollback') ?? (version === '' ? 'There is no earlier version.' : undefined)}
      perform={(key) => start(org.id, it.id, { type: 'deploy_components', config_version: Number(version), ...(planOnly ? { plan_only: true } : {}) }, key)}
      then={(result) => go(org.to.run(startedRun(result)))}
    >
      <p>Only components that differ are deployed. The install stays at that version until you deploy all components again.</p>
      <SelectField label="Version" value={version} onChange={(event) => setChosen(event.target.value)}>
        {known.map((config) => (
          <option key={config.id} value={String(config.version)}>
            {config.version}
            {config.version === before?.version ? ' (the one before)' : config.version === newest ? ' (deployed now)' : ''}
          </option>
        ))}
      </SelectField>
      <Check label="Plan only" checked={planOnly} onChange={(event) => setPlanOnly(event.target.checked)} />
    </Confirm>
  )
}
