// Figures of the dashboard, as JSON: size of the first load, interactions on the fleet, from an event to the pixel, jumps in a log.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { api, browser, installCalled, isLive, org, p95, root, signedIn } from './common.mjs'

const real = process.env.REAL_ORG ?? org
const { page } = await signedIn()
const figures = {}
// An interaction begins when the browser has the click or the key, not when this script decides to send it.
await page.addInitScript(() => {
  for (const kind of ['click', 'keydown']) addEventListener(kind, (event) => { window.__began = event.timeStamp }, true)
})

const sizes = execFileSync('node', [fileURLToPath(new URL('../scripts/size.mjs', import.meta.url))], { encoding: 'utf8' })
figures.ui_first_load_kib = Number(/first load\s+([\d.]+)/.exec(sizes)?.[1])

/** From the input to the frame in which its effect is painted. */
async function timed(act, painted) {
  const begin = await page.evaluate(() => {
    window.__began = undefined
    return performance.now()
  })
  await act()
  const at = await page.waitForFunction(painted.test, painted.with, { polling: 'raf', timeout: 8000 }).then((handle) => handle.jsonValue())
  return at - ((await page.evaluate(() => window.__began)) ?? begin)
}

// Interactions: what answers a key or a click within the page. The pause of typing (200 ms) before a filter asks the server is not counted:
// the field itself has to keep up with the keys.
await page.goto(root())
await page.getByRole('table', { name: 'Installs' }).waitFor()
const interactions = []
const field = page.locator('#fleet-q')
for (const letter of ['f', 'l', 'e', 'e', 't', '-']) {
  const before = await field.inputValue()
  interactions.push(await timed(() => field.press(letter), { test: (text) => document.querySelector('#fleet-q')?.value === text && performance.now(), with: before + letter }))
}
await page.waitForTimeout(600)
await field.fill('')
await page.waitForTimeout(800)
for (const column of ['Changed', 'Version', 'Status', 'Install']) {
  const head = page.getByRole('button', { name: column, exact: true })
  interactions.push(await timed(() => head.click(), { test: (name) => [...document.querySelectorAll('th')].some((it) => it.textContent === name && it.ariaSort !== 'none') && performance.now(), with: column }))
  await page.waitForTimeout(400)
}
for (let n = 0; n < 6; n += 1) {
  const row = page.locator('tbody tr').nth(n)
  const name = (await row.locator('a').first().innerText()).trim()
  interactions.push(await timed(() => row.locator('a').first().click(), { test: (text) => document.querySelector('h1')?.textContent === text && performance.now(), with: name }))
  await page.goBack()
  await page.getByRole('table', { name: 'Installs' }).waitFor()
}
if (process.env.VERBOSE) console.error(interactions.map(Math.round))
figures.interaction_p95_ms = Math.round(p95(interactions))

// An event to the pixel: a label is set through the API until the row says it was changed by this name.
const install = await installCalled('ada').catch(async () => (await api('/v1/fleet?limit=1')).rows[0])
await page.goto(`${root()}/installs/${install.id}`)
await page.getByRole('heading', { level: 1 }).waitFor()
await isLive(page)
const pixels = []
for (let n = 0; n < 20; n += 1) {
  const value = `v${n}-${Date.now().toString(36)}`
  const seen = page.waitForFunction((text) => document.querySelector('main')?.textContent?.includes(text) && Date.now(), `speed=${value}`, { polling: 'raf', timeout: 10_000 })
  const begin = Date.now()
  await api(`/v1/installs/${install.id}/labels`, { method: 'POST', body: { labels: { speed: value } } })
  pixels.push((await (await seen).jsonValue()) - begin)
  await page.waitForTimeout(150)
}
figures.event_to_pixel_p95_ms = p95(pixels)
await api(`/v1/installs/${install.id}/labels`, { method: 'DELETE', body: { keys: ['speed'] } })

// Jumps in a log, to lines that are not in memory.
if (process.env.JOB_LOG) {
  const outline = await api(`/v1/log-streams/${process.env.JOB_LOG}/outline`, { org: real })
  await page.goto(`${root(real)}/jobs/${outline.job_id}`)
  await page.getByRole('region', { name: 'Log' }).waitFor()
  const jumps = []
  for (let n = 0; n < 30; n += 1) {
    const to = 1 + Math.floor(((n * 7919) % 1000) / 1000 * (outline.lines - 1))
    const ms = await timed(
      () => page.evaluate((line) => { location.hash = `L${line}` }, to),
      { test: (line) => { const it = document.querySelector(`[role=region] a[href="#L${line}"]`); return it && !it.parentElement.textContent.endsWith('…') && performance.now() }, with: to },
    )
    if (process.env.VERBOSE) console.error(to, Math.round(ms))
    jumps.push(ms)
  }
  figures.log_jump_p95_ms = Math.round(p95(jumps))
}
figures.heap_mb = Math.round(await page.evaluate(() => (performance.memory?.usedJSHeapSize ?? 0) / 1e6))

await browser.close()
console.log(JSON.stringify(figures))
assert.ok(figures.ui_first_load_kib < 250)
