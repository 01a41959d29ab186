import { CommandLine } from '../../parts/Page'
import { AuditTable } from '../../parts/AuditTable'
import { useInstall } from './use-install'

export function InstallAudit() {
  const { install } = useInstall()
  return (
    <>
      <AuditTable install={install.id} />
      <CommandLine text="ferry events" />
    </>
  )
}
