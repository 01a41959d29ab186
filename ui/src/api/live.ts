/**
 * What has changed in the org, as it happens. The tabs of a browser share one stream, because a browser opens only six connections to a
 * server: the tab that holds the lock has the stream, and tells the others. A log that is on screen has a stream of its own.
 */
import { type LiveState, type Message, real, SILENCE, Stream, type World } from './stream'
import type { LiveNote, LogLines } from './types'

export type { LiveState } from './stream'

export const HIDDEN = 60_000
/** A log that nobody sees is read from where it ended when it is seen again. */
export const LOG_HIDDEN = 3_000

export interface LiveHooks {
  note: (note: LiveNote) => void
  reset: () => void
  refused: () => void
}

type Told = { message: Message } | { state: LiveState } | { ask: 'state' | 'retry' }

export class Live {
  private state: LiveState = { is: 'connecting' }
  private readonly listeners = new Set<() => void>()
  private readonly stream: Stream
  private channel: BroadcastChannel | undefined
  private leads = false
  private giveUp: (() => void) | undefined
  private event = ''
  private begun = false
  private hidden: ReturnType<typeof setTimeout> | undefined
  private silence: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly org: string,
    private readonly hooks: LiveHooks,
    private readonly world: World = real,
  ) {
    this.stream = new Stream(
      {
        url: () => `/v1/live?${new URLSearchParams({ org_id: org, ...(this.event ? { after: this.event } : {}) })}`,
        message: (message) => {
          this.tell({ message })
          this.take(message)
        },
        state: (state) => {
          this.set(state)
          this.tell({ state })
        },
        opened: () => {
          // What happened between two streams without a known place is not known: fetch all.
          if (this.begun && this.event === '') this.hooks.reset()
          this.begun = true
        },
        refused: () => hooks.refused(),
      },
      world,
    )
  }

  start() {
    document.addEventListener('visibilitychange', this.visibility)
    window.addEventListener('online', this.retry)
    if (typeof BroadcastChannel !== 'undefined') {
      this.channel = new BroadcastChannel(`ferry-live-${this.org}`)
      this.channel.onmessage = (event: MessageEvent<Told>) => this.hear(event.data)
    }
    this.join()
  }

  stop() {
    document.removeEventListener('visibilitychange', this.visibility)
    window.removeEventListener('online', this.retry)
    clearTimeout(this.hidden)
    this.leave()
    this.channel?.close()
    this.listeners.clear()
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  current = (): LiveState => this.state

  /** Tries at once. */
  retry = () => {
    if (this.leads) this.stream.retry()
    else this.tell({ ask: 'retry' })
  }

  /** Follows a log after the line that is known, as long as the page is seen. */
  follow(log: string, after: number, on: (lines: LogLines) => void): () => void {
    let line = String(after)
    let hidden: ReturnType<typeof setTimeout> | undefined
    const stream = new Stream(
      {
        url: () => `/v1/live?${new URLSearchParams({ org_id: this.org, log, log_after: line })}`,
        message: (message) => {
          line = message.id.split('~')[1] || line
          if (message.kind === 'log') parse<LogLines>(message.data, on)
        },
        state: () => {},
        refused: () => this.hooks.refused(),
      },
      this.world,
    )
    const visibility = () => {
      clearTimeout(hidden)
      if (document.visibilityState === 'hidden') hidden = setTimeout(() => stream.close(), LOG_HIDDEN)
      else stream.retry()
    }
    document.addEventListener('visibilitychange', visibility)
    stream.connect()
    return () => {
      document.removeEventListener('visibilitychange', visibility)
      clearTimeout(hidden)
      stream.close()
    }
  }

  /** Waits for the lock; whoever gets it has the stream until it leaves. */
  private join() {
    this.tell({ ask: 'state' })
    this.watch()
    const locks = navigator.locks as LockManager | undefined
    if (!locks || !this.channel) {
      this.lead()
      return
    }
    const abort = new AbortController()
    this.giveUp = () => abort.abort()
    locks
      .request(`ferry-live-${this.org}`, { signal: abort.signal }, () => new Promise<void>((release) => {
        this.giveUp = release
        this.lead()
      }))
      .catch(() => {})
  }

  private lead() {
    this.leads = true
    clearTimeout(this.silence)
    this.stream.retry()
  }

  private leave() {
    clearTimeout(this.silence)
    this.stream.close()
    this.leads = false
    this.giveUp?.()
    this.giveUp = undefined
  }

  private visibility = () => {
    clearTimeout(this.hidden)
    if (document.visibilityState === 'hidden') {
      this.hidden = setTimeout(() => {
        this.leave()
        this.set({ is: 'paused' })
      }, HIDDEN)
    } else if (this.state.is === 'paused') {
      this.set({ is: 'connecting' })
      // While it slept it heard nothing.
      this.hooks.reset()
      this.join()
    }
  }

  private tell(told: Told) {
    this.channel?.postMessage(told)
  }

  private hear(told: Told) {
    if ('ask' in told) {
      if (!this.leads) return
      if (told.ask === 'retry') this.stream.retry()
      else this.tell({ state: this.state })
      return
    }
    if (this.leads || this.state.is === 'paused') return
    if ('state' in told) this.set(told.state)
    else {
      this.set({ is: 'live' })
      this.take(told.message)
    }
    this.watch()
  }

  /** The tab that has the stream may have died without a word. */
  private watch() {
    clearTimeout(this.silence)
    if (this.leads) return
    const heard = this.world.now()
    this.silence = setTimeout(() => this.set({ is: 'stale', since: heard, next: this.world.now() + SILENCE }), SILENCE)
  }

  private take({ kind, data, id }: Message) {
    const event = id.split('~')[0]
    // A tab that slept resumes from its own place, and hears some twice; what it knows is not fetched again.
    if (event) this.event = event
    if (kind === 'note') parse<LiveNote>(data, this.hooks.note)
    if (kind === 'reset') this.hooks.reset()
  }

  private set(state: LiveState) {
    if (state.is === this.state.is && state.is !== 'stale') return
    this.state = state
    for (const it of this.listeners) it()
  }
}

function parse<T>(text: string, use: (value: T) => void) {
  try {
    use(JSON.parse(text) as T)
  } catch {
    // A broken message changes nothing; the next look at the data does.
  }
}
