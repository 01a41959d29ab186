import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet } from '@tanstack/react-router'
import { Home } from './pages/Home'
import { Lost } from './pages/Lost'
import { PageError } from './pages/PageError'
import { Shell } from './parts/shell/Shell'
import { Fleet } from './pages/fleet/Fleet'

const root = createRootRoute({ component: Outlet, notFoundComponent: Lost, errorComponent: PageError })
const home = createRoute({ getParentRoute: () => root, path: '/', component: Home })
const org = createRoute({ getParentRoute: () => root, path: '/o/$org', component: Shell, notFoundComponent: Lost })

const page = (path: string, component: ReturnType<typeof lazyRouteComponent>) => createRoute({ getParentRoute: () => org, path, component, errorComponent: PageError })
const install = createRoute({
  getParentRoute: () => org,
  path: 'installs/$install',
  component: lazyRouteComponent(() => import('./pages/install/InstallFrame'), 'InstallFrame'),
  errorComponent: PageError,
})
const part = (path: string, component: ReturnType<typeof lazyRouteComponent>) => createRoute({ getParentRoute: () => install, path, component, errorComponent: PageError })
const app = createRoute({
  getParentRoute: () => org,
  path: 'apps/$app',
  component: lazyRouteComponent(() => import('./pages/apps/AppFrame'), 'AppFrame'),
  errorComponent: PageError,
})
const appPart = (path: string, component: ReturnType<typeof lazyRouteComponent>) => createRoute({ getParentRoute: () => app, path, component, errorComponent: PageError })
const settings = createRoute({
  getParentRoute: () => org,
  path: 'settings',
  component: lazyRouteComponent(() => import('./pages/settings/SettingsFrame'), 'SettingsFrame'),
  errorComponent: PageError,
})
const setting = (path: string, component: ReturnType<typeof lazyRouteComponent>) => createRoute({ getParentRoute: () => settings, path, component, errorComponent: PageError })

const tree = root.addChildren([
  home,
  org.addChildren([
    createRoute({ getParentRoute: () => org, path: '/', component: Fleet, errorComponent: PageError }),
    page('approvals', lazyRouteComponent(() => import('./pages/approvals/Approvals'), 'Approvals')),
    page('workflows', lazyRouteComponent(() => import('./pages/run/Runs'), 'Runs')),
    page('workflows/$workflow', lazyRouteComponent(() => import('./pages/run/Run'), 'Run')),
    page('jobs', lazyRouteComponent(() => import('./pages/log/Jobs'), 'Jobs')),
    page('jobs/$job', lazyRouteComponent(() => import('./pages/log/Log'), 'Log')),
    page('installs/new', lazyRouteComponent(() => import('./pages/install/NewInstall'), 'NewInstall')),
    install.addChildren([
      part('/', lazyRouteComponent(() => import('./pages/install/Overview'), 'Overview')),
      part('components', lazyRouteComponent(() => import('./pages/install/Components'), 'Components')),
      part('components/$component', lazyRouteComponent(() => import('./pages/install/Component'), 'Component')),
      part('history', lazyRouteComponent(() => import('./pages/install/History'), 'History')),
      part('drift', lazyRouteComponent(() => import('./pages/install/Drift'), 'Drift')),
      part('health', lazyRouteComponent(() => import('./pages/install/Health'), 'Health')),
      part('actions', lazyRouteComponent(() => import('./pages/install/Actions'), 'Actions')),
      part('runbooks', lazyRouteComponent(() => import('./pages/install/Runbooks'), 'Runbooks')),
      part('inputs', lazyRouteComponent(() => import('./pages/install/Inputs'), 'Inputs')),
      part('state', lazyRouteComponent(() => import('./pages/install/State'), 'State')),
      part('stack', lazyRouteComponent(() => import('./pages/install/Stack'), 'Stack')),
      part('policies', lazyRouteComponent(() => import('./pages/install/Policies'), 'Policies')),
      part('audit', lazyRouteComponent(() => import('./pages/install/InstallAudit'), 'InstallAudit')),
    ]),
    page('apps', lazyRouteComponent(() => import('./pages/apps/Apps'), 'Apps')),
    app.addChildren([
      appPart('/', lazyRouteComponent(() => import('./pages/apps/AppOverview'), 'AppOverview')),
      appPart('versions', lazyRouteComponent(() => import('./pages/apps/Versions'), 'Versions')),
      appPart('versions/$version', lazyRouteComponent(() => import('./pages/apps/Version'), 'Version')),
      appPart('components', lazyRouteComponent(() => import('./pages/apps/AppComponents'), 'AppComponents')),
      appPart('builds', lazyRouteComponent(() => import('./pages/apps/Builds'), 'Builds')),
      appPart('secrets', lazyRouteComponent(() => import('./pages/apps/Secrets'), 'Secrets')),
    ]),
    page('builds/$build', lazyRouteComponent(() => import('./pages/apps/Build'), 'Build')),
    page('runners', lazyRouteComponent(() => import('./pages/runners/Runners'), 'Runners')),
    page('runners/$runner', lazyRouteComponent(() => import('./pages/runners/Runner'), 'Runner')),
    page('audit', lazyRouteComponent(() => import('./pages/audit/Audit'), 'Audit')),
    settings.addChildren([
      setting('members', lazyRouteComponent(() => import('./pages/settings/Members'), 'Members')),
      setting('tokens', lazyRouteComponent(() => import('./pages/settings/Tokens'), 'Tokens')),
      setting('sources', lazyRouteComponent(() => import('./pages/settings/Sources'), 'Sources')),
      setting('logs', lazyRouteComponent(() => import('./pages/settings/Logs'), 'Logs')),
      setting('views', lazyRouteComponent(() => import('./pages/settings/Views'), 'Views')),
    ]),
  ]),
])

/** Query parameters are plain texts: `?q=12` is the text `12`, not a number. */
export const router = createRouter({
  routeTree: tree,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
    const text = new URLSearchParams(entries.map(([key, value]) => [key, String(value)])).toString()
    return text ? `?${text}` : ''
  },
  scrollRestoration: true,
  defaultPreload: 'intent',
  defaultPreloadDelay: 60,
  defaultNotFoundComponent: Lost,
  trailingSlash: 'never',
})
