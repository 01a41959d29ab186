import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { path, post } from '../../api/client'
import { build as buildQuery } from '../../api/queries'
import type { Build as BuildData } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Note } from '../../base/Failure'
import { Id } from '../../base/Id'
import { Time } from '../../base/Time'
import { bytes } from '../../lib/format'
import { isOpen } from '../../lib/status'
import { duration } from '../../lib/time'
import { Confirm } from '../../parts/act'
import { Loaded } from '../../parts/Loaded'
import { LogView } from '../../parts/logview/LogView'
import { useNeeds, useOrg } from '../../parts/org'
import { Facts, Page, Section } from '../../parts/Page'
import { To } from '../../parts/To'

/** One build: its artifact and its log. */
export function Build() {
  const org = useOrg()
  const { build = '' } = useParams({ strict: false })
  const query = useQuery(buildQuery(org.id, build))
  return <Loaded query={query}>{(it) => <Shown it={it} />}</Loaded>
}

function Shown({ it }: { it: BuildData }) {
  const org = useOrg()
  const operator = useNeeds('operator')
  const [ask, setAsk] = useState(false)
  return (
    <Page
      title={it.component_name}
      name={`Build of ${it.component_name}`}
      crumbs={it.app_id ? [{ to: org.to.apps, name: 'Apps' }, { to: org.to.app(it.app_id, 'builds'), name: 'Builds' }] : [{ to: org.to.apps, name: 'Apps' }]}
      chips={
        <>
          <Chip status={it.status} kind="build" />
          <Id id={it.id} what="build id" />
        </>
      }
      actions={
        isOpen(it.status) && (
          <Button reason={operator} onClick={() => setAsk(true)}>
            Cancel
          </Button>
        )
      }
      command={`ferry builds get ${it.id}`}
    >
      {it.status_description && <Note role={it.status === 'error' ? 'bad' : 'neutral'}><span dir="auto">{it.status_description}</span></Note>}
      <Facts
        facts={[
          ['Began', <Time key="t" at={it.created_at} />],
          ['Took', it.duration ? duration(it.duration / 1e6) : undefined],
          ['Config', `${it.component_config_version}`],
          ['Commit', it.vcs_connection_commit && <span key="c"><code>{it.vcs_connection_commit.sha.slice(0, 12)}</code> <bdi>{it.vcs_connection_commit.message}</bdi> <bdi className="muted">{it.vcs_connection_commit.author_name}</bdi></span>],
          ['Same as', it.same_as && <To key="s" to={org.to.build(it.same_as)}>an earlier build</To>],
          ['Cache', it.cache_steps ? `${it.cache_hits ?? 0} of ${it.cache_steps} steps` : undefined],
        ]}
      />
      {it.artifact && (
        <Section title="Artifact">
          <Facts
            facts={[
              ['Reference', <bdi key="r" className="mono">{it.artifact.ref}</bdi>],
              ['Digest', <Id key="d" id={it.artifact.digest} what="digest" />],
              ['Type', <bdi key="t">{it.artifact.artifact_type || it.artifact.media_type}</bdi>],
              ['Size', bytes(it.artifact.size)],
              ['Platform', it.artifact.platform && [it.artifact.platform.os, it.artifact.platform.architecture].filter(Boolean).join('/')],
            ]}
          />
        </Section>
      )}
      {it.log_stream && (
        <Section title="Log">
          <LogView log={it.log_stream.id} />
        </Section>
      )}
      <Confirm open={ask} onClose={() => setAsk(false)} title="Cancel this build?" label="Cancel the build" danger reason={operator} perform={(key) => post(path`/v1/builds/${it.id}/cancel`, { org: org.id, idempotency: key })}>
        <p>The next sync, or the Build button, begins it again.</p>
      </Confirm>
    </Page>
  )
}
