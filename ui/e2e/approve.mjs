// Approvals and other work of a person, by keyboard: bob's plan from the fleet, a newer plan under an open dialog, why a run waits, a rollback,
// a new install. Prints what it measured.
import assert from 'node:assert/strict'
import { api, browser, complaints, installCalled, isLive, org, root, signedIn, watch } from './common.mjs'

const { context, page } = await signedIn()
const figures = {}
const approveButton = /^Approve [0-9a-f]{6}$/

/** Tab until the focus is on what is looked for. */
async function tabTo(test, most = 200) {
  for (let n = 0; n < most; n += 1) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(test)) return
  }
  assert.fail(`the keyboard does not reach it: ${test}`)
}

// Bob's plan, from the fleet, with the keyboard alone; another tab sees it as it happens.
const bob = await installCalled(process.env.BOB ?? 'bob')
await page.goto(root())
await page.getByRole('table', { name: 'Installs' }).waitFor()
await page.keyboard.press('/')
await page.keyboard.type(bob.name)
await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1)
await tabTo(() => document.activeElement?.closest('tbody') !== null && document.activeElement?.getAttribute('href')?.includes('/installs/') === true)
await page.keyboard.press('Enter')
await page.getByRole('heading', { name: bob.name, level: 1 }).waitFor()
await page.keyboard.press('g')
await page.keyboard.press('a')
await page.getByRole('heading', { name: 'Approvals' }).waitFor()
await page.goto(`${root()}/workflows/${bob.workflow_id}`)
const other = watch(await context.newPage())
await other.goto(page.url())
await page.bringToFront()
await page.getByRole('button', { name: approveButton }).waitFor()
await other.getByRole('button', { name: approveButton }).waitFor()
await isLive(page)
await page.keyboard.press('a')
const dialog = page.getByRole('dialog')
await dialog.waitFor()
assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel', 'the focus begins at Cancel')
await page.keyboard.press('Escape')
await dialog.waitFor({ state: 'detached' })
await page.keyboard.press('a')
await dialog.waitFor()
await page.keyboard.press('Tab')
const button = await page.evaluate(() => document.activeElement?.textContent ?? '')
assert.match(button, approveButton)
let begin = Date.now()
await page.keyboard.press('Enter')
await dialog.waitFor({ state: 'detached' })
await page.getByRole('button', { name: button }).waitFor({ state: 'detached' })
figures.answered_ms = Date.now() - begin
await other.getByRole('button', { name: button }).waitFor({ state: 'detached' })
figures.other_tab_ms = Date.now() - begin
await other.close()

// A newer plan under an open dialog: the old dialog can't approve it.
const cyd = await installCalled('cyd')
await page.goto(`${root()}/workflows/${cyd.workflow_id}`)
await page.getByRole('button', { name: approveButton }).waitFor()
await isLive(page)
await page.keyboard.press('a')
await dialog.waitFor()
const waiting = (await api('/v1/approvals?limit=500')).items.find((it) => it.install_name === 'cyd')
await api(`/v1/workflows/${waiting.workflow_id}/steps/${waiting.step_id}/approvals/${encodeURIComponent(waiting.digest)}/response`, { method: 'POST', body: { response_type: 'retry' } })
await dialog.getByText(/newer plan|does not wait|taken its place/).first().waitFor()
const old = dialog.getByRole('button', { name: approveButton })
assert.equal(await old.getAttribute('aria-disabled'), 'true', 'the old dialog approves nothing')
await old.click({ force: true })
await page.waitForTimeout(300)
const after = (await api('/v1/approvals?limit=500')).items.find((it) => it.install_name === 'cyd')
assert.ok(after && after.step_id !== waiting.step_id, 'the newer plan still waits')
await page.keyboard.press('Escape')
await dialog.waitFor({ state: 'detached' })

// Why does cyd's run wait? From the fleet in two steps.
begin = Date.now()
await page.goto(root())
await page.getByRole('row').filter({ hasText: 'cyd' }).getByRole('link', { name: /needs approval/ }).click()
await page.getByText(/waits for an approval/).first().waitFor()
figures.why_ms = Date.now() - begin

// Ada goes back to the version before.
const ada = await installCalled('ada')
await page.goto(`${root()}/installs/${ada.id}`)
await page.getByRole('button', { name: 'Deploy', exact: true }).click()
await page.getByRole('menuitem', { name: /Roll back/ }).click()
const back = dialog.getByRole('button', { name: /^Deploy version \d+$/ })
if (ada.version > 1) {
  await back.click()
  await page.waitForURL(/\/workflows\/wfl/)
  await page.getByRole('heading', { level: 1 }).waitFor()
} else {
  // The app has one version only: the dialog says so.
  await dialog.getByText('There is no other version.').first().waitFor({ state: 'attached' })
  await page.keyboard.press('Escape')
}

// A new install by the form.
await page.goto(`${root()}/installs/new?app=${ada.app_id}`)
const name = `new-${Date.now().toString(36)}`
await page.getByLabel('Name', { exact: true }).fill(name)
await page.getByLabel('Labels').fill('env=test')
await page.getByRole('button', { name: 'Create and provision' }).click()
await page.waitForURL(/\/workflows\/wfl/)
assert.equal((await installCalled(name)).labels.env, 'test')

// Single keys can be switched off.
await page.keyboard.press('?')
await page.getByLabel('Single-key shortcuts').uncheck()
await page.keyboard.press('Escape')
await page.keyboard.press('g')
await page.keyboard.press('f')
await page.waitForTimeout(200)
assert.match(page.url(), /\/workflows\//)

// Seven tabs share one stream: each gets its data, and says that it is live.
await page.evaluate(() => localStorage.clear())
const tabs = []
for (let n = 0; n < 6; n += 1) {
  const tab = watch(await context.newPage())
  await tab.goto(root())
  tabs.push(tab)
}
for (const tab of tabs) {
  await tab.getByRole('table', { name: 'Installs' }).waitFor()
  await isLive(tab)
}

await browser.close()
assert.deepEqual(complaints, [], `org ${org}`)
console.log(JSON.stringify(figures))
