// Signs people in with a real Chromium: `node browser.mjs TOOLS CONTROL IDP INVITE`. Exits with an error at the first thing that is not as
// it should be.
import assert from 'node:assert/strict'
import http from 'node:http'
import { createRequire } from 'node:module'

const [tools, control, idp, invite] = process.argv.slice(2)
const { chromium } = createRequire(`${tools}/`)('playwright-core')

const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
const complaints = []

async function somebody(name) {
  await fetch(`${idp}/admin/as/${name}`)
  const page = await (await browser.newContext()).newPage()
  page.on('console', (message) => message.type() === 'error' && complaints.push(`${name}: ${message.text()}`))
  page.on('pageerror', (error) => complaints.push(`${name}: ${error}`))
  return page
}

const text = (page) => page.locator('main').innerText()

async function signIn(page) {
  await page.getByRole('link', { name: 'Sign in with The IdP' }).click()
}

// A sign-in, and where it leads.
const ann = await somebody('ann')
await ann.goto(`${control}/device`)
assert.match(ann.url(), /\/login\?return_to=%2Fdevice/)
await signIn(ann)
assert.equal(ann.url(), `${control}/device`, 'back where the person wanted to go')

// A CLI is let in by its code, typed with the keyboard alone.
const post = async (path, body) => (await fetch(`${control}${path}`, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })).json()
const device = await post('/auth/device', { host: '<b>laptop</b>' })
await ann.keyboard.type(device.user_code.toLowerCase())
await ann.keyboard.press('Enter')
await ann.getByText('asked').waitFor({ timeout: 5000 }).catch(async () => { throw new Error(await text(ann)) })
assert.match(await text(ann), /<b>laptop<\/b>/, 'shown as text')
assert.equal((await post('/auth/device/token', { device_code: device.device_code })).error, 'authorization_pending')
await ann.getByRole('button', { name: 'Sign this CLI in' }).click()
await ann.getByText('The CLI is signed in').waitFor()
const granted = await post('/auth/device/token', { device_code: device.device_code }).then(async (told) => {
  if (!told.error) return told
  await new Promise((done) => setTimeout(done, 8500))
  return post('/auth/device/token', { device_code: device.device_code })
})
assert.match(granted.access_token ?? '', /^fra_/)

// The cookie is out of reach of scripts, and of other sites.
await ann.goto(`${control}/account`)
assert.equal(await ann.evaluate(() => document.cookie), '')
const cookies = (await ann.context().cookies()).filter((it) => it.name.startsWith('ferry-dev-'))
assert.deepEqual(cookies.map((it) => [it.httpOnly, it.sameSite]), [[true, 'Lax']])
const evil = http.createServer((request, response) => {
  response.setHeader('content-type', 'text/html')
  response.end(`<form id=out method=post action="${control}/auth/logout"></form><form id=all method=post action="${control}/account/sessions"><input name=all value=1></form>`)
})
await new Promise((done) => evil.listen(0, done))
// Another site, and the same host at another port, to which browsers do send the cookie.
for (const host of ['localhost', '127.0.0.1']) {
  const thief = await ann.context().newPage()
  await thief.goto(`http://${host}:${evil.address().port}/`)
  const outcomes = await thief.evaluate(async (control) => {
    const tried = async (path, init) => {
      try {
        return (await fetch(`${control}${path}`, { credentials: 'include', ...init })).status
      } catch {
        return 'blocked'
      }
    }
    return [
      await tried('/v1/session', {}),
      await tried('/v1/account/sessions', { method: 'DELETE', headers: { 'x-ferry-request': '1' } }),
      await tried('/v1/account/sessions', { method: 'DELETE' }),
      await tried('/account/sessions', { method: 'POST', mode: 'no-cors', body: new URLSearchParams({ all: '1' }) }),
    ]
  }, control)
  assert.deepEqual(outcomes.slice(0, 3), ['blocked', 'blocked', 'blocked'], `${host}: ${outcomes}`)
  for (const form of ['out', 'all']) {
    await thief.goto(`http://${host}:${evil.address().port}/`)
    await Promise.all([thief.waitForNavigation(), thief.evaluate((id) => document.getElementById(id).submit(), form)])
    assert.match(await text(thief), /not sent by a page of this server|Sign in/)
  }
  await thief.close()
  await ann.goto(`${control}/account`)
  assert.equal(ann.url(), `${control}/account`, `still signed in after ${host}`)
}
evil.close()

// An invite: who only opens it has not used it; its button leads through the sign-in.
const bob = await somebody('bob')
await bob.goto(invite)
await bob.reload()
await bob.getByRole('button', { name: 'Accept' }).click()
assert.match(await text(bob), /bob@elsewhere\.test/)
await signIn(bob)
await bob.goto(`${control}/account`)
assert.match(await text(bob), /approver in/)

// At the width of a phone nothing is cut off.
await bob.setViewportSize({ width: 375, height: 700 })
assert.ok(await bob.evaluate(() => document.documentElement.scrollWidth <= 375))

// Out: one ends the other's view of nothing.
await ann.getByRole('button', { name: 'Sign out', exact: true }).click()
assert.match(ann.url(), /\/login$/)
await ann.goto(`${control}/account`)
assert.match(ann.url(), /\/login/)
await ann.goBack()
assert.doesNotMatch(await text(ann), /Signed in as/, 'nothing is kept for the way back')
await bob.goto(`${control}/account`)
assert.equal(bob.url(), `${control}/account`)
assert.deepEqual(complaints, [])
if (process.env.PICTURES) {
  await bob.screenshot({ path: `${process.env.PICTURES}/account.png` })
  await ann.goto(`${control}/login`)
  await ann.screenshot({ path: `${process.env.PICTURES}/login.png` })
}
await browser.close()
console.log('all is well')
