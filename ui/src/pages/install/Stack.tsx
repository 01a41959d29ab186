import { useQuery } from '@tanstack/react-query'
import { stack } from '../../api/queries'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { useCopy } from '../../base/Id'
import { Table } from '../../base/Table'
import { Time } from '../../base/Time'
import { useState } from 'react'
import { Loaded } from '../../parts/Loaded'
import { useOrg } from '../../parts/org'
import { CommandLine, Section } from '../../parts/Page'
import { Values } from '../../parts/Values'
import { JoinCommandButton } from '../runners/JoinCommandButton'
import { useInstall } from './use-install'
import styles from './Install.module.css'

/** What the customer applies, and what it reported. */
export function Stack() {
  const org = useOrg()
  const { install, can } = useInstall()
  const query = useQuery(stack(org.id, install.id))
  const [open, setOpen] = useState('')
  const [copied, copy] = useCopy()
  return (
    <>
      <div className="row">
        <JoinCommandButton runner={install.runner_id} reason={can.join && !can.join.ok ? can.join.reason : undefined} />
      </div>
      <Loaded query={query} missing={<Empty command={`ferry installs provision ${install.name}`}>No version of the stack yet. Provision makes the first one.</Empty>}>
        {(it) => (
          <>
            <Section title="Versions">
              {(it.versions?.length ?? 0) === 0 && <Empty command={`ferry installs provision ${install.name}`}>No version of the stack yet.</Empty>}
              {(it.versions?.length ?? 0) > 0 && (
                <Table
                  label="Versions of the stack"
                  rows={it.versions ?? []}
                  id={(version) => version.id}
                  columns={[
                    { key: 'status', head: 'Status', fit: true, cell: (version) => <Chip status={version.composite_status.status} kind="stack" /> },
                    { key: 'why', head: 'Note', plain: true, cell: (version) => <span className="muted" dir="auto">{version.composite_status.status_human_description}</span> },
                    { key: 'at', head: 'Made', fit: true, cell: (version) => <Time at={version.created_at} /> },
                    { key: 'open', head: <span className="visually-hidden">Actions</span>, fit: true, cell: (version) => version.contents && <span className="row"><Button small onClick={() => copy(version.contents ?? '')}>{copied ? 'Copied' : 'Copy'}</Button><Button small aria-expanded={open === version.id} onClick={() => setOpen(open === version.id ? '' : version.id)}>{open === version.id ? 'Hide' : 'Show'}</Button></span> },
                  ]}
                />
              )}
              {open && <pre className={styles.pre} tabIndex={0}>{it.versions?.find((version) => version.id === open)?.contents}</pre>}
            </Section>
            <Section title="Outputs">
              <Values values={it.install_stack_outputs?.data_contents as Record<string, unknown> | undefined} empty="The stack has not reported outputs." />
            </Section>
          </>
        )}
      </Loaded>
      <CommandLine text={`ferry runners join-command ${install.name}`} />
    </>
  )
}
