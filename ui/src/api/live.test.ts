import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { HIDDEN, Live, type LiveHooks, SILENCE } from './live'

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
  addEventListener(name: string, listener: unknown) {
    this.on.set(name, listener as (event: Event) => void)
  }
  close() {
    this.closed = true
  }
  say(name: string, data: unknown, lastEventId = '') {
    this.on.get(name)?.(new MessageEvent(name, { data: JSON.stringify(data), lastEventId }))
  }
}

const hooks = { note: vi.fn(), reset: vi.fn(), refused: vi.fn() } satisfies LiveHooks
let live: Live
const latest = () => Fake.all.at(-1) as Fake

beforeEach(() => {
  vi.useFakeTimers()
  Fake.all = []
  Object.values(hooks).forEach((it) => it.mockReset())
  live = new Live('org1', hooks, { open: (url) => new Fake(url) as never, now: () => Date.now(), random: () => 0.5 })
  live.start()
})

afterEach(() => {
  live.stop()
  vi.useRealTimers()
})

it('passes notes on, and resumes after the last one', () => {
  latest().say('note', { kind: 'workflow.status' }, '41')
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

it('closes when nobody looks for a minute, and comes back', () => {
  latest().say('beat', {}, '7')
  const see = vi.spyOn(document, 'visibilityState', 'get')
  see.mockReturnValue('hidden')
  document.dispatchEvent(new Event('visibilitychange'))
  vi.advanceTimersByTime(HIDDEN)
  expect(live.current().is).toBe('paused')
  expect(latest().closed).toBe(true)
  see.mockReturnValue('visible')
  document.dispatchEvent(new Event('visibilitychange'))
  expect(latest().url).toContain('after=7')
  see.mockRestore()
})

it('fetches all when it does not know where it ended, and on reset', () => {
  latest().onopen?.(new Event('open'))
  expect(hooks.reset).not.toHaveBeenCalled()
  latest().onerror?.(new Event('error'))
  vi.advanceTimersByTime(1000)
  latest().onopen?.(new Event('open'))
  expect(hooks.reset).toHaveBeenCalledTimes(1)
  latest().say('reset', {}, '90')
  expect(hooks.reset).toHaveBeenCalledTimes(2)
})

it('follows a log on the same stream, and ignores the one before', () => {
  const before = latest()
  const on = vi.fn()
  const stop = live.follow('log1', 'p9', on)
  expect(Fake.all.filter((it) => !it.closed)).toHaveLength(1)
  expect(latest().url).toMatch(/log=log1.*log_after=p9/)
  before.say('log', { from: 1 })
  expect(on).not.toHaveBeenCalled()
  latest().say('log', { from: 2 }, '5.p10')
  expect(on).toHaveBeenCalledWith({ from: 2 })
  latest().onerror?.(new Event('error'))
  vi.advanceTimersByTime(1000)
  expect(latest().url).toContain('after=5.p10')
  stop()
  expect(latest().url).not.toContain('log=')
})

it('says when the stream was refused, and survives broken messages', () => {
  latest().say('note', undefined)
  latest().readyState = 2
  latest().onerror?.(new Event('error'))
  expect(hooks.refused).toHaveBeenCalled()
})
