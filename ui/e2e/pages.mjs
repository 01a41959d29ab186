// Every page in both themes at 1280 and 375 px: no console error, nothing that the content security policy refuses, nothing wider than the
// page, axe-core clean. PICTURES names a directory for the README's pictures, ALL_PICTURES one for pictures of everything.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { api, browser, complaints, control, installCalled, org, root, signedIn } from './common.mjs'

const { default: AxeBuilder } = createRequire(import.meta.url)('@axe-core/playwright')
const { page } = await signedIn()
const only = process.argv.slice(2)
const found = []

const ada = await installCalled('ada').catch(async () => (await api('/v1/fleet?limit=1')).rows[0])
const waiting = (await api('/v1/approvals?limit=1')).items[0]
const app = await api(`/v1/apps/${ada.app_id}`)
const [config] = await api(`/v1/apps/${app.id}/configs?limit=1`)
const [build] = await api('/v1/builds?limit=1')
const of = process.env.REAL_ORG ?? org
const log = process.env.JOB_LOG ? await api(`/v1/log-streams/${process.env.JOB_LOG}/outline`, { org: of }) : undefined
const install = `${root()}/installs/${ada.id}`
const name = (part) => part || 'overview'

const pages = {
  fleet: root(),
  'fleet-empty': `${root()}?q=zzzz`,
  ...(waiting ? { run: `${root()}/workflows/${waiting.workflow_id}?step=${waiting.step_id}` } : {}),
  ...(ada.workflow_id ? { 'run-over': `${root()}/workflows/${ada.workflow_id}` } : {}),
  ...(log?.job_id ? { log: `${root(of)}/jobs/${log.job_id}` } : {}),
  approvals: `${root()}/approvals`,
  answered: `${root()}/approvals?answered=true`,
  runs: `${root()}/workflows`,
  jobs: `${root(of)}/jobs`,
  ...Object.fromEntries(['', 'components', 'history', 'drift', 'health', 'actions', 'runbooks', 'inputs', 'state', 'stack', 'policies', 'audit'].map((part) => [`install-${name(part)}`, part ? `${install}/${part}` : install])),
  graph: `${install}?view=graph`,
  component: `${install}/components/${encodeURIComponent(ada.components[0].name)}`,
  'new-install': `${root()}/installs/new?app=${app.id}`,
  apps: `${root()}/apps`,
  ...Object.fromEntries(['', 'versions', 'components', 'builds', 'secrets'].map((part) => [`app-${name(part)}`, `${root()}/apps/${app.id}${part && `/${part}`}`])),
  version: `${root()}/apps/${app.id}/versions/${config.id}`,
  ...(build ? { build: `${root()}/builds/${build.id}` } : {}),
  runners: `${root()}/runners`,
  runner: `${root()}/runners/${ada.runner_id}`,
  audit: `${root()}/audit`,
  ...Object.fromEntries(['members', 'tokens', 'sources', 'logs', 'views'].map((part) => [`settings-${part}`, `${root()}/settings/${part}`])),
}

await page.goto(control)
for (const [title, address] of Object.entries(pages)) {
  if (only.length > 0 && !only.includes(title)) continue
  for (const theme of ['dark', 'light']) {
    await page.evaluate((value) => localStorage.setItem('ferry-prefs', JSON.stringify({ theme: value })), theme)
    for (const width of [1280, 375]) {
      const here = `${title} ${theme} ${width}`
      await page.setViewportSize({ width, height: 800 })
      if (width === 1280) await page.goto(address)
      await page.waitForSelector('main h1', { timeout: 60_000 }).catch(() => found.push(`${here}: no heading`))
      await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'), undefined, { timeout: 60_000 }).catch(() => found.push(`${here}: still loading`))
      await page.waitForTimeout(100)
      for (const alert of await page.locator('main [role=alert]').allInnerTexts()) found.push(`${here}: shows the failure: ${alert}`)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      if (wide > 0) found.push(`${here}: ${wide} px wider than the page`)
      if (!['fleet-empty', 'new-install', 'settings-members', 'settings-tokens', 'settings-sources', 'settings-logs', 'settings-views'].includes(title) && (await page.getByText('In a terminal').count()) === 0) found.push(`${here}: shows no command`)
      if (process.env.ALL_PICTURES) await page.screenshot({ path: `${process.env.ALL_PICTURES}/${title}-${theme}-${width}.png` })
      // Each theme in one width: colours do not depend on the width, nor the structure on the theme. ALL_AXE=1 looks at all four.
      if (!process.env.ALL_AXE && (theme === 'dark') !== (width === 1280)) continue
      const axe = await new AxeBuilder({ page }).withTags(['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']).analyze()
      for (const it of axe.violations) found.push(`${here}: axe ${it.id}: ${it.nodes.length} × ${it.nodes[0]?.html.slice(0, 160)}`)
      const pictured = { fleet: 'fleet', run: 'run', log: 'log', 'install-overview': 'install', approvals: 'approvals' }[title]
      if (process.env.PICTURES && pictured && theme === 'dark' && width === 1280) await page.screenshot({ path: `${process.env.PICTURES}/${pictured}.png` })
    }
  }
}

// Who may only read sees every button, and why it does nothing.
if (process.env.READER_TOKEN && only.length === 0) {
  const { page: reader } = await signedIn(process.env.READER_TOKEN)
  if (waiting) {
    await reader.goto(pages.run)
    const approve = reader.getByRole('button', { name: /^Approve [0-9a-f]{6}$/ })
    await approve.waitFor()
    assert.equal(await approve.getAttribute('aria-disabled'), 'true')
    assert.match((await approve.getAttribute('title')) ?? '', /role|live/)
    await reader.getByText(/this needs the role approver/).first().waitFor()
  }
  await reader.goto(install)
  await reader.getByRole('button', { name: 'Deploy', exact: true }).click()
  await reader.getByRole('menuitem', { name: /Deploy all components.*this needs the role operator/ }).waitFor()
  await reader.context().close()
}

// What belongs to somebody else is not found.
if (only.length === 0) {
  const { page: lost } = await signedIn()
  complaints.length = 0
  await lost.goto(`${root()}/installs/ins00000000000000000000000`)
  await lost.getByText('There is no install').waitFor()
  await lost.goto(`${control}/o/nobodys`)
  await lost.getByRole('heading', { name: 'No such org' }).waitFor()
  await lost.goto(`${root()}/nowhere/at/all`)
  await lost.getByRole('heading', { name: 'Not found' }).waitFor()
  await lost.context().close()
  // The browser itself reports each 404.
  for (let at = complaints.length - 1; at >= 0; at -= 1) if (/status of 404/.test(complaints[at])) complaints.splice(at, 1)
}

await browser.close()
assert.deepEqual([...new Set([...found, ...complaints])], [])
console.log(`${Object.keys(pages).length} pages are well`)
