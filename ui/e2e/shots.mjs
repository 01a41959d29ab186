// Looks at every page: a picture in both themes at 1280 and 375 px, axe-core, console errors, and what is wider than the page.
// `node e2e/shots.mjs BASE SIGN_IN_LINK ORG OUT [page…]`; CHROMIUM names the browser. Exits with an error when something was found.
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const { default: AxeBuilder } = createRequire(import.meta.url)('@axe-core/playwright')
const [base, link, org, out, ...only] = process.argv.slice(2)
mkdirSync(out, { recursive: true })
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...(link === '-' ? { storageState: `${out}/session.json` } : {}) })
const page = await context.newPage()
const found = []
let here = ''
page.on('console', (message) => ['error', 'warning'].includes(message.type()) && found.push(`${here}: console: ${message.text()}`))
page.on('pageerror', (error) => found.push(`${here}: ${error}`))
page.on('response', (answer) => answer.status() >= 400 && found.push(`${here}: ${answer.status()} ${answer.url()}`))

if (link !== '-') {
  await page.goto(link)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.context().storageState({ path: `${out}/session.json` })
}
await page.goto(`${base}/`)
found.length = 0
const call = async (path) => {
  const answer = await page.request.get(`${base}${path}`, { headers: { 'x-nuon-org-id': orgId } })
  return answer.ok() ? answer.json() : undefined
}
const session = await (await page.request.get(`${base}/v1/session`)).json()
const orgId = session.orgs.find((it) => it.name === org)?.id
const install = (await call('/v1/fleet?limit=1'))?.rows[0]
const waiting = (await call('/v1/approvals?limit=1'))?.items[0]
const runs = (await call('/v1/workflows?limit=20')) ?? []
const jobs = (await call('/v1/runner-jobs?limit=20')) ?? []
const apps = (await call('/v1/apps')) ?? []
const app = apps.find((it) => it.id === install?.app_id) ?? apps[0]
const builds = (await call('/v1/builds?limit=1')) ?? []
const configs = app ? ((await call(`/v1/apps/${app.id}/configs`)) ?? []) : []
const runners = (await call('/v1/runners')) ?? []
const root = `/o/${encodeURIComponent(org)}`
const i = install && `${root}/installs/${install.id}`

const pages = {
  fleet: root,
  'fleet-empty': `${root}?q=zzzz`,
  run: waiting && `${root}/workflows/${waiting.workflow_id}?step=${waiting.step_id}`,
  'run-last': runs[0] && `${root}/workflows/${runs[0].id}`,
  log: jobs[0] && `${root}/jobs/${jobs[0].id}`,
  approvals: `${root}/approvals`,
  runs: `${root}/workflows`,
  ...(i && Object.fromEntries(['', 'components', 'history', 'drift', 'health', 'actions', 'runbooks', 'inputs', 'state', 'stack', 'policies', 'audit'].map((part) => [`install-${part || 'overview'}`, part ? `${i}/${part}` : i]))),
  graph: i && `${i}?view=graph`,
  component: install?.components[0] && `${i}/components/${encodeURIComponent(install.components[0].name)}`,
  'new-install': `${root}/installs/new${app ? `?app=${app.id}` : ''}`,
  apps: `${root}/apps`,
  ...(app && Object.fromEntries(['', 'versions', 'components', 'builds', 'secrets'].map((part) => [`app-${part || 'overview'}`, `${root}/apps/${app.id}${part && `/${part}`}`]))),
  version: configs[0] && `${root}/apps/${app.id}/versions/${configs[0].id}`,
  build: builds[0] && `${root}/builds/${builds[0].id}`,
  runners: `${root}/runners`,
  runner: runners[0] && `${root}/runners/${runners[0].id}`,
  jobs: `${root}/jobs`,
  audit: `${root}/audit`,
  ...Object.fromEntries(['members', 'tokens', 'sources', 'logs', 'views'].map((part) => [`settings-${part}`, `${root}/settings/${part}`])),
}

for (const [name, path] of Object.entries(pages)) {
  if (!path || (only.length > 0 && !only.includes(name))) continue
  for (const theme of ['dark', 'light']) {
    await page.evaluate((value) => localStorage.setItem('ferry-prefs', JSON.stringify({ theme: value })), theme).catch(() => {})
    for (const width of [1280, 375]) {
      here = `${name} ${theme} ${width}`
      await page.setViewportSize({ width, height: 800 })
      await page.goto(`${base}${path}`)
      await page.waitForSelector('h1, [role=alert]', { timeout: 8000 }).catch(() => found.push(`${here}: no heading`))
      await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'), undefined, { timeout: 5000 }).catch(() => found.push(`${here}: still loading`))
      await page.waitForTimeout(150)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      if (wide > 0) found.push(`${here}: ${wide} px wider than the page`)
      await page.screenshot({ path: `${out}/${name}-${theme}-${width}.png`, fullPage: width === 1280 })
      if (width === 1280 || theme === 'dark') {
        const axe = await new AxeBuilder({ page }).withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']).analyze()
        for (const it of axe.violations) found.push(`${here}: axe ${it.id}: ${it.nodes.length} × ${it.nodes[0]?.html.slice(0, 160)}`)
      }
    }
  }
}
await browser.close()
for (const it of new Set(found)) console.log(it)
process.exit(found.length > 0 ? 1 : 0)
