// What a person does, in a real browser against a real server: `node e2e/flows.mjs BASE SIGN_IN_LINK ORG`. ORG is a simulated org in which
// at least one plan waits. Prints figures as JSON; exits with an error at the first thing that is not as it should be.
import assert from 'node:assert/strict'
import { chromium } from 'playwright-core'

const [base, link, org] = process.argv.slice(2)
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
const complaints = []
const figures = {}
const root = `${base}/o/${encodeURIComponent(org)}`

function watch(page) {
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  return page
}
const page = watch(await context.newPage())
await page.goto(link)
await page.getByRole('button', { name: 'Sign in' }).click()

// The fleet, from nothing to rows.
let begin = Date.now()
await page.goto(root)
await page.getByRole('table', { name: 'Installs' }).waitFor()
figures.fleet_ms = Date.now() - begin

// Seven tabs, one stream: the last one still gets its data.
const tabs = []
for (let n = 0; n < 6; n += 1) {
  const tab = watch(await context.newPage())
  await tab.goto(root)
  tabs.push(tab)
}
await tabs.at(-1).getByRole('table', { name: 'Installs' }).waitFor()
await tabs.at(-1).getByText('live', { exact: true }).first().waitFor({ timeout: 15_000 })

// An approval by keyboard alone, seen in another tab as it happens.
await page.bringToFront()
await page.keyboard.press('g')
await page.keyboard.press('a')
await page.getByRole('heading', { name: 'Approvals' }).waitFor()
await page.getByRole('list', { name: 'Plans' }).waitFor()
await page.keyboard.press('Enter')
await page.waitForURL(/\/workflows\/wfl/)
const other = tabs[0]
await other.goto(page.url())
await other.getByText('needs approval').first().waitFor()
await page.getByRole('button', { name: /^Approve [0-9a-f]{6}$/ }).waitFor()
await page.waitForFunction(() => document.querySelector('header')?.innerText.includes('live'))
await page.keyboard.press('a')
const dialog = page.getByRole('dialog')
await dialog.waitFor()
assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel', 'the focus begins at Cancel')
await page.keyboard.press('Tab')
const step = new URL(page.url()).searchParams.get('step')
assert.ok(step, 'the selected step is in the address')
const button = await page.evaluate(() => document.activeElement?.textContent ?? '')
assert.match(button, /^Approve [0-9a-f]{6}$/)
begin = Date.now()
await page.keyboard.press('Enter')
await dialog.waitFor({ state: 'detached' })
await page.getByRole('button', { name: button }).waitFor({ state: 'detached' })
figures.answered_ms = Date.now() - begin
await other.getByRole('button', { name: button }).waitFor({ state: 'detached' })
figures.other_tab_ms = Date.now() - begin

// The palette finds an install, and the focus comes back.
await page.keyboard.press('Control+k')
await page.getByRole('combobox', { name: 'Search' }).waitFor()
await page.keyboard.press('Escape')
await page.getByRole('dialog').waitFor({ state: 'detached' })

// Single keys can be switched off.
await page.keyboard.press('?')
await page.getByLabel('Single-key shortcuts').uncheck()
await page.keyboard.press('Escape')
await page.keyboard.press('g')
await page.keyboard.press('f')
assert.match(page.url(), /\/workflows\//)

assert.deepEqual(complaints, [])
await browser.close()
console.log(JSON.stringify(figures))
