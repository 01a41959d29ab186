import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { createContext, useContext, useEffect } from 'react'
import { app as appQuery } from '../../api/queries'
import type { App } from '../../api/types'
import { Button } from '../../base/Button'
import { Chip } from '../../base/Chip'
import { Empty } from '../../base/Failure'
import { Id } from '../../base/Id'
import { Loaded } from '../../parts/Loaded'
import { useNeeds, useOrg } from '../../parts/org'
import { Page } from '../../parts/Page'
import { remember } from '../../parts/prefs'
import { Tabs } from '../../parts/Tabs'
import { To, useGo } from '../../parts/To'

const AppContext = createContext<App | undefined>(undefined)

export function useApp(): App {
  const found = useContext(AppContext)
  if (!found) throw new Error('this page needs an app')
  return found
}

export function AppFrame() {
  const org = useOrg()
  const { app = '' } = useParams({ strict: false })
  const query = useQuery(appQuery(org.id, app))
  return (
    <Loaded query={query} missing={<Empty action={<To to={org.to.apps}>All apps</To>}>There is no app <bdi>{app}</bdi> in this org.</Empty>}>
      {(it) => (
        <AppContext value={it}>
          <Framed app={it} />
        </AppContext>
      )}
    </Loaded>
  )
}

function Framed({ app }: { app: App }) {
  const org = useOrg()
  const go = useGo()
  const operator = useNeeds('operator')
  const to = (part = '') => org.to.app(app.id, part)
  useEffect(() => remember(org.id, { to: org.to.app(app.id), name: app.name, kind: 'app' }), [org, app.id, app.name])
  return (
    <Page
      title={app.display_name || app.name}
      crumbs={[{ to: org.to.apps, name: 'Apps' }]}
      chips={
        <>
          <Chip status={app.status} kind="app" title={app.status_description} />
          {app.display_name && app.display_name !== app.name && <bdi className="muted">{app.name}</bdi>}
          <Id id={app.id} what="app id" />
        </>
      }
      actions={
        <Button kind="primary" reason={operator} onClick={() => go(org.to.newInstall(app.id))}>
          New install
        </Button>
      }
      command={`ferry apps get ${app.name}`}
    >
      <Tabs
        label="Pages of the app"
        tabs={[
          { to: to(), name: 'Overview', exact: true },
          { to: to('versions'), name: 'Versions' },
          { to: to('components'), name: 'Components' },
          { to: to('builds'), name: 'Builds' },
          { to: to('secrets'), name: 'Variables' },
        ]}
      />
      <Outlet />
    </Page>
  )
}
