// What the browser tests share: a signed-in browser, the API, and complaints of pages. Environment: CONTROL (address), TOKEN, ORG.
import { chromium } from 'playwright-core'

export const control = process.env.CONTROL
export const org = process.env.ORG
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-precise-memory-info']

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
/** What pages complained about: errors, and what the content security policy refused. */
export const complaints = []

/** A browser in which the holder of a token is signed in; its first page. */
export async function signedIn(token = process.env.TOKEN, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'dark', ...options })
  // Beside other tests a page may take long; nothing here measures that.
  context.setDefaultTimeout(90_000)
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP refused ${event.violatedDirective} ${event.blockedURI}`))
  })
  const answer = await context.request.post(`${control}/auth/session`, { form: { token }, headers: { origin: control } })
  if (!answer.ok()) throw new Error(`signing in: ${answer.status()} ${await answer.text()}`)
  return { context, page: watch(await context.newPage()) }
}

export function watch(page, allowed = () => false) {
  page.on('console', (message) => message.type() === 'error' && !allowed(message.text()) && complaints.push(`${page.url()}: ${message.text()}`))
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error}`))
  return page
}

/** Calls the API with the token, as a program does. */
export async function api(path, { method = 'GET', body, org: of = org, token = process.env.TOKEN } = {}) {
  const answer = await fetch(`${control}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'x-nuon-org-id': of, ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': `e2e-${Math.random()}` }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

export const root = (of = org) => `${control}/o/${encodeURIComponent(of)}`

export async function installCalled(name, of = org) {
  const row = (await api(`/v1/fleet?q=${encodeURIComponent(name)}&limit=100`, { org: of })).rows.find((it) => it.name === name)
  if (!row) throw new Error(`there is no install ${name}`)
  return row
}

/** Waits until the page says that it is live. */
export const isLive = (page) => page.waitForFunction(() => /\blive\b/.test(document.querySelector('header')?.innerText ?? '') && !document.querySelector('header')?.innerText.includes('not live'), undefined, { timeout: 20_000 })

export const p95 = (numbers) => numbers.toSorted((a, b) => a - b)[Math.ceil(numbers.length * 0.95) - 1]
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

/** Has the harness kill the server, looks at what pages say meanwhile, and has it start again. */
export async function restart(meanwhile) {
  const answered = () => new Promise((done) => process.stdin.once('data', done))
  console.log('KILL')
  await answered()
  await meanwhile()
  console.log('START')
  await answered()
  process.stdin.pause()
}
