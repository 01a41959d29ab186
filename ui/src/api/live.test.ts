import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { HIDDEN, Live, LOG_HIDDEN, type LiveHooks } from './live'
import { SILENCE } from './stream'

class Fake {
  static all: Fake[] = []
  closed = false
  readyState = 0
  onopen: ((event: Event) => void) | null = null
  onerror: ((event: Event) => void) | null = null
  private on = new Map<string, (event: Event) => void>()
  constructor(readonly url: string) {
    Fake.all.push(this)
  }
  addEventListener(name: string, listener: (event: Event) => void) {
    this.on.set(name, listener)
  }
  close() {
    this.closed = true
  }
  say(name: string, data: unknown, lastEventId = '') {
    this.on.get(name)?.(new MessageEvent(name, { data: JSON.stringify(data), lastEventId }))
  }
}

/** Tabs of one browser: a channel that delivers at once, and a lock with a queue. */
class Channel {
  static all: Channel[] = []
  onmessage: ((event: MessageEvent) => void) | null = null
  constructor() {
    Channel.all.push(this)
  }
  postMessage(data: unknown) {
    for (const it of Channel.all) if (it !== this) it.onmessage?.(new MessageEvent('message', { data }))
  }
  close() {
    Channel.all = Channel.all.filter((it) => it !== this)
  }
}
let queue: (() => Promise<void>)[] = []
let held = false
async function serve() {
  if (held) return
  held = true
  for (let next = queue.shift(); next; next = queue.shift()) await next()
  held = false
}
const locks = {
  request: (_: string, { signal }: { signal: AbortSignal }, run: () => Promise<void>) => {
    const mine = () => run()
    queue.push(mine)
    signal.addEventListener('abort', () => {
      queue = queue.filter((it) => it !== mine)
    })
    void serve()
    return Promise.resolve()
  },
}

const world = { open: (url: string) => new Fake(url), now: () => Date.now(), random: () => 0.5 }
const newHooks = () => ({ note: vi.fn(), reset: vi.fn(), refused: vi.fn() }) satisfies LiveHooks
let hooks = newHooks()
let live: Live
const latest = () => Fake.all.at(-1) as Fake
const open = () => Fake.all.filter((it) => !it.closed)
const see = (state: 'hidden' | 'visible') => {
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(state)
  document.dispatchEvent(new Event('visibilitychange'))
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('BroadcastChannel', Channel)
  Object.defineProperty(navigator, 'locks', { value: locks, configurable: true })
  Fake.all = []
  hooks = newHooks()
  live = new Live('org1', hooks, world)
  live.start()
})

afterEach(() => {
  live.stop()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

it('passes notes on, and resumes after the last one', () => {
  latest().say('note', { kind: 'workflow.status' }, '41~0')
  expect(live.current().is).toBe('live')
  expect(hooks.note).toHaveBeenCalledWith({ kind: 'workflow.status' })
  latest().onerror?.(new Event('error'))
  expect(live.current().is).toBe('stale')
  vi.advanceTimersByTime(1000)
  expect(latest().url).toContain('after=41')
  expect(Fake.all[0]?.closed).toBe(true)
})

it('is stale after silence; a beat is no silence', () => {
  latest().say('beat', {})
  vi.advanceTimersByTime(SILENCE - 1)
  latest().say('beat', {})
  vi.advanceTimersByTime(SILENCE - 1)
  expect(live.current().is).toBe('live')
  vi.advanceTimersByTime(2)
  expect(live.current()).toMatchObject({ is: 'stale' })
})

it('backs off, up to 30 s', () => {
  for (let tries = 0; tries < 12; tries += 1) {
    latest().onerror?.(new Event('error'))
    const state = live.current()
    const wait = state.is === 'stale' ? state.next - Date.now() : 0
    expect(wait).toBe(Math.max(250, Math.min(30_000, 1000 * 2 ** tries) / 2))
    vi.advanceTimersByTime(wait)
  }
  latest().say('beat', {})
  latest().onerror?.(new Event('error'))
  expect(live.current()).toMatchObject({ next: Date.now() + 500 })
})

it('closes when nobody looks for a minute, and comes back', async () => {
  latest().say('beat', {}, '7~0')
  see('hidden')
  vi.advanceTimersByTime(HIDDEN)
  expect(live.current().is).toBe('paused')
  expect(open()).toHaveLength(0)
  await vi.advanceTimersByTimeAsync(0)
  see('visible')
  await vi.advanceTimersByTimeAsync(0)
  expect(latest().url).toContain('after=7')
})

it('fetches all when it does not know where it ended, and on reset', () => {
  latest().onopen?.(new Event('open'))
  expect(hooks.reset).not.toHaveBeenCalled()
  latest().onerror?.(new Event('error'))
  vi.advanceTimersByTime(1000)
  latest().onopen?.(new Event('open'))
  expect(hooks.reset).toHaveBeenCalledTimes(1)
  latest().say('reset', {}, '90~0')
  expect(hooks.reset).toHaveBeenCalledTimes(2)
})

it('shares one stream among seven tabs; when its tab goes, the next one resumes it', async () => {
  const others = Array.from({ length: 6 }, () => ({ hooks: newHooks(), tab: undefined as Live | undefined }))
  latest().say('beat', {}, '5~0')
  for (const it of others) {
    it.tab = new Live('org1', it.hooks, world)
    it.tab.start()
  }
  expect(open()).toHaveLength(1)
  expect(others.every((it) => it.tab?.current().is === 'live')).toBe(true)
  latest().say('note', { kind: 'x' }, '6~0')
  expect(others.every((it) => it.hooks.note.mock.calls.length === 1)).toBe(true)
  live.stop()
  await vi.advanceTimersByTimeAsync(0)
  expect(open()).toHaveLength(1)
  expect(latest().url).toContain('after=6')
  for (const it of others) it.tab?.stop()
  await vi.advanceTimersByTimeAsync(0)
})

it('follows a log on a stream of its own, from the line that is known, only while it is seen', () => {
  const on = vi.fn()
  const stop = live.follow('log1', 9, on)
  const log = latest()
  expect(log.url).toMatch(/log=log1.*log_after=9/)
  log.say('log', { from: 10 }, '5~10')
  expect(on).toHaveBeenCalledWith({ from: 10 })
  log.onerror?.(new Event('error'))
  vi.advanceTimersByTime(1000)
  expect(latest().url).toContain('log_after=10')
  see('hidden')
  vi.advanceTimersByTime(LOG_HIDDEN)
  expect(latest().closed).toBe(true)
  see('visible')
  expect(latest().url).toContain('log_after=10')
  stop()
  expect(latest().closed).toBe(true)
})

it('says when the stream was refused, and survives broken messages', () => {
  latest().say('note', undefined)
  latest().readyState = 2
  latest().onerror?.(new Event('error'))
  expect(hooks.refused).toHaveBeenCalled()
})
