import { Outlet } from '@tanstack/react-router'
import { useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { Tabs } from '../../parts/Tabs'

export function SettingsFrame() {
  const org = useOrg()
  return (
    <Page title="Settings">
      <Tabs
        label="Settings"
        tabs={[
          { to: org.to.settings('members'), name: 'Members' },
          { to: org.to.settings('tokens'), name: 'Tokens' },
          { to: org.to.settings('sources'), name: 'Source logins' },
          { to: org.to.settings('logs'), name: 'Logs' },
          { to: org.to.settings('views'), name: 'Views' },
        ]}
      />
      <Outlet />
    </Page>
  )
}
