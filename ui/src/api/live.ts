/** One event stream per tab: resumed where it ended, closed while nobody looks, honest about silence. */
import type { LiveNote, LogLines } from './types'

export const SILENCE = 25_000
export const HIDDEN = 60_000
const FIRST = 1_000
const MOST = 30_000

export type LiveState =
  | { is: 'connecting' }
  | { is: 'live' }
  | { is: 'paused' }
  /** Nothing came since; the next try begins at `next`. */
  | { is: 'stale'; since: number; next: number }

export interface LiveHooks {
  note: (note: LiveNote) => void
  reset: () => void
  /** A refused stream may mean that the session ended: whoever listens asks the server. */
  refused: () => void
}

type Source = Pick<EventSource, 'close' | 'addEventListener'> & { readyState: number; onerror: ((event: globalThis.Event) => void) | null; onopen: ((event: globalThis.Event) => void) | null }

export interface World {
  open: (url: string) => Source
  now: () => number
  random: () => number
}

const real: World = { open: (url) => new EventSource(url), now: () => Date.now(), random: Math.random }

export class Live {
  private source: Source | undefined
  private state: LiveState = { is: 'connecting' }
  private listeners = new Set<() => void>()
  private heard: number
  private tries = 0
  private lastId = ''
  private silence: ReturnType<typeof setTimeout> | undefined
  private again: ReturnType<typeof setTimeout> | undefined
  private hidden: ReturnType<typeof setTimeout> | undefined
  private log: { id: string; after: string; on: (lines: LogLines) => void } | undefined

  constructor(
    private readonly org: string,
    private readonly hooks: LiveHooks,
    private readonly world: World = real,
  ) {
    this.heard = world.now()
  }

  start() {
    document.addEventListener('visibilitychange', this.visibility)
    window.addEventListener('online', this.retry)
    this.connect()
  }

  stop() {
    document.removeEventListener('visibilitychange', this.visibility)
    window.removeEventListener('online', this.retry)
    clearTimeout(this.hidden)
    this.close()
    this.listeners.clear()
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  current = (): LiveState => this.state

  /** Tries at once. */
  retry = () => {
    this.tries = 0
    this.connect()
  }

  /** Follows a log on the same stream, from a position on. */
  follow(id: string, after: string, on: (lines: LogLines) => void): () => void {
    const mine = { id, after, on }
    this.log = mine
    this.lastId = ''
    this.connect()
    return () => {
      if (this.log !== mine) return
      this.log = undefined
      this.lastId = ''
      this.connect()
    }
  }

  private set(state: LiveState) {
    if (state.is === this.state.is && state.is !== 'stale') return
    this.state = state
    for (const it of this.listeners) it()
  }

  private visibility = () => {
    clearTimeout(this.hidden)
    if (document.visibilityState === 'hidden') {
      this.hidden = setTimeout(() => {
        this.close()
        this.set({ is: 'paused' })
      }, HIDDEN)
    } else if (this.state.is === 'paused') this.retry()
  }

  private close() {
    clearTimeout(this.silence)
    clearTimeout(this.again)
    this.source?.close()
    this.source = undefined
  }

  private url(): string {
    const query = new URLSearchParams({ org_id: this.org })
    if (this.lastId) query.set('after', this.lastId)
    if (this.log) {
      query.set('log', this.log.id)
      if (!this.lastId && this.log.after) query.set('log_after', this.log.after)
    }
    return `/v1/live?${query}`
  }

  private connect() {
    this.close()
    // What happened between two connections without a known position is not known: fetch all.
    const blind = this.lastId === '' && this.state.is !== 'connecting'
    const source = this.world.open(this.url())
    this.source = source
    const mine = (run: (event: MessageEvent<string>) => void) => (event: globalThis.Event) => {
      if (this.source !== source) return
      const message = event as MessageEvent<string>
      if (message.lastEventId) this.lastId = message.lastEventId
      this.alive()
      run(message)
    }
    source.addEventListener('note', mine((event) => parse<LiveNote>(event.data, this.hooks.note)))
    source.addEventListener('log', mine((event) => parse<LogLines>(event.data, (lines) => this.log?.on(lines))))
    source.addEventListener('beat', mine(() => {}))
    source.addEventListener('reset', mine((event) => {
      this.lastId = event.lastEventId
      this.hooks.reset()
    }))
    source.onopen = () => {
      if (this.source !== source) return
      this.alive()
      if (blind) this.hooks.reset()
    }
    source.onerror = () => {
      if (this.source !== source) return
      if (source.readyState === 2) this.hooks.refused()
      this.lost()
    }
    this.watch()
  }

  private alive() {
    this.heard = this.world.now()
    this.tries = 0
    this.set({ is: 'live' })
    this.watch()
  }

  private watch() {
    clearTimeout(this.silence)
    this.silence = setTimeout(() => this.lost(), SILENCE)
  }

  /** Waits between 0 and 1, 2, 4 … 30 s, at random, so that a thousand tabs don't come back at once. */
  private lost() {
    this.close()
    const most = Math.min(MOST, FIRST * 2 ** this.tries)
    this.tries += 1
    const wait = Math.max(250, this.world.random() * most)
    this.set({ is: 'stale', since: this.heard, next: this.world.now() + wait })
    this.again = setTimeout(() => this.connect(), wait)
  }
}

function parse<T>(text: string, use: (value: T) => void) {
  try {
    use(JSON.parse(text) as T)
  } catch {
    // A broken message changes nothing; the next look at the data does.
  }
}
