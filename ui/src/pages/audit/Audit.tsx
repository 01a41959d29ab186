import { AuditTable } from '../../parts/AuditTable'
import { Page } from '../../parts/Page'

/** Who did what? */
export function Audit() {
  return (
    <Page title="Audit" command="ferry events">
      <AuditTable />
    </Page>
  )
}
