// Logs: a line by its number, jumps, search, failures, hostile content, and a server that is killed while a log streams and an approval
// dialog is open. JOB_LOG is a log of REAL_ORG with 30,000 lines, LIVE_LOG one that is still written (`tick N`).
import assert from 'node:assert/strict'
import { api, browser, complaints, installCalled, isLive, org, restart, root, signedIn, sleep, watch } from './common.mjs'

const real = process.env.REAL_ORG ?? org
const { context, page } = await signedIn()
const figures = {}
const outline = await api(`/v1/log-streams/${process.env.JOB_LOG}/outline`, { org: real })
const box = page.getByRole('region', { name: 'Log' })
const job = `${root(real)}/jobs/${outline.job_id}`
const line = (n) => page.locator(`[role=region] a[href="#L${n}"]`)

// The first line, on a page that is loaded already; then a link to a line, from nothing.
await page.goto(`${root(real)}/jobs`)
await page.getByRole('table', { name: 'Jobs' }).waitFor()
let begin = Date.now()
await page.evaluate((to) => {
  history.pushState({}, '', to)
  dispatchEvent(new PopStateEvent('popstate'))
}, new URL(job).pathname)
await line(1).waitFor()
await page.waitForFunction(() => !document.querySelector('[role=region]')?.textContent?.includes('…'))
figures.first_line_ms = Date.now() - begin

const middle = Math.floor(outline.lines / 2)
await page.goto(`${job}#L${middle}-L${middle + 4}`)
await line(middle).waitFor()
assert.ok(await line(middle + 4).isVisible(), 'the line of the link is on the screen')
await line(middle + 2).click()
assert.match(page.url(), new RegExp(`#L${middle + 2}$`))
await line(middle + 6).click({ modifiers: ['Shift'] })
assert.match(page.url(), new RegExp(`#L${middle + 2}-L${middle + 6}$`))

// The ends, by keyboard.
await box.focus()
await page.keyboard.press('End')
await line(outline.lines).waitFor()
await page.keyboard.press('Home')
await line(1).waitFor()

// Search runs on the server; a failure is one key away.
await page.keyboard.press('/')
await page.keyboard.type('timed out')
await page.keyboard.press('Enter')
await page.getByText(/\d+ lines/).first().waitFor()
await page.waitForTimeout(300)
await page.keyboard.press('Enter')
await page.locator('mark').first().waitFor()
await page.keyboard.press('Escape')
if ((outline.failures?.length ?? 0) > 0) {
  await page.evaluate(() => document.activeElement?.blur())
  await page.keyboard.press('f')
  await line(outline.failures[0]).waitFor()
}

// What a log or a name says is text; a long line stays inside its box.
await box.focus()
await page.keyboard.press('End')
await page.waitForTimeout(300)
assert.equal(await page.evaluate(() => window.__pwned), undefined)
assert.equal(await page.locator('[role=region] img, [role=region] script').count(), 0)
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'the page is as wide as before')
assert.ok(await page.evaluate(() => document.querySelectorAll('*').length < 20_000), 'an ANSI bomb makes no flood of elements')
for (const name of ['ada', 'bob']) {
  const install = await installCalled(name).catch(() => undefined)
  if (!install) continue
  await page.goto(`${root()}/installs/${install.id}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForTimeout(300)
  assert.equal(await page.evaluate(() => window.__pwned), undefined)
  assert.equal(await page.locator('main img, main script, main iframe').count(), 0)
}

// The server dies while a log streams and a dialog is open.
if (process.env.LIVE_LOG) {
  const live = await api(`/v1/log-streams/${process.env.LIVE_LOG}/outline`, { org: real })
  await page.goto(`${root(real)}/jobs/${live.job_id}`)
  await page.getByText(/tick \d+/).first().waitFor()
  const waiting = (await api('/v1/approvals?limit=1')).items[0]
  const asking = watch(await context.newPage(), (text) => /ERR_|Failed to load/.test(text))
  if (waiting) {
    await asking.goto(`${root()}/workflows/${waiting.workflow_id}?step=${waiting.step_id}`)
    await isLive(asking)
    await asking.getByRole('button', { name: /^Approve [0-9a-f]{6}$/ }).click()
    await asking.getByRole('dialog').waitFor()
  }
  await page.bringToFront()
  await sleep(1000)
  await restart(async () => {
    await page.getByText('Not live since').waitFor({ timeout: 60_000 })
    if (waiting) {
      await asking.bringToFront()
      await asking.getByText('Not live since').waitFor({ timeout: 60_000 })
      const button = asking.getByRole('dialog').getByRole('button', { name: /^Approve [0-9a-f]{6}$/ })
      assert.equal(await button.getAttribute('aria-disabled'), 'true', 'nothing is approved while the page is not live')
      await page.bringToFront()
    }
  })
  await isLive(page)
  await asking.close()
  // The browser reports each try while the server was away.
  for (let at = complaints.length - 1; at >= 0; at -= 1) if (/ERR_|Failed to load resource/.test(complaints[at])) complaints.splice(at, 1)
  const before = (await api(`/v1/log-streams/${process.env.LIVE_LOG}/outline`, { org: real })).lines
  for (let tries = 0; (await api(`/v1/log-streams/${process.env.LIVE_LOG}/outline`, { org: real })).lines < before + 20; tries += 1) {
    assert.ok(tries < 100, 'the job goes on')
    await sleep(200)
  }
  await box.focus()
  await page.keyboard.press('End')
  await sleep(1500)
  // Every line once: read from the first to the last as it is painted.
  const seen = []
  await page.keyboard.press('Home')
  const last = (await api(`/v1/log-streams/${process.env.LIVE_LOG}/outline`, { org: real })).lines
  for (let guard = 0; guard < 2000; guard += 1) {
    await page.waitForFunction(() => ![...document.querySelectorAll('[role=region] a[href^="#L"]')].some((it) => it.parentElement?.textContent?.endsWith('…')))
    const rows = await page.evaluate(() => [...document.querySelectorAll('[role=region] a[href^="#L"]')].map((it) => [Number(it.textContent), it.parentElement?.textContent ?? '']))
    for (const [n, text] of rows) seen[n] = text
    if (rows.some(([n]) => n >= last)) break
    await page.keyboard.press('PageDown')
    await sleep(30)
  }
  const ticks = seen.slice(0, last + 1).flatMap((text) => (text === undefined ? [] : [...text.matchAll(/tick (\d+)$/g)].map((it) => Number(it[1]))))
  assert.ok(ticks.length > 20, 'ticks are shown')
  for (let at = 1; at < ticks.length; at += 1) assert.equal(ticks[at], ticks[at - 1] + 1, `tick ${ticks[at - 1]} is followed by ${ticks[at]}`)
  figures.ticks = ticks.length
}

await browser.close()
assert.deepEqual(complaints, [])
console.log(JSON.stringify(figures))
