/** An event stream that resumes where it ended, notices silence, and backs off. */

export const SILENCE = 25_000
const FIRST = 1_000
const MOST = 30_000

export type LiveState =
  | { is: 'connecting' }
  | { is: 'live' }
  | { is: 'paused' }
  /** Nothing came since; the next try begins at `next`. */
  | { is: 'stale'; since: number; next: number }

export interface Message {
  kind: 'note' | 'log' | 'beat' | 'reset'
  data: string
  /** `41~7`: event 41 of the org, line 7 of the log. */
  id: string
}

type Handler = ((event: globalThis.Event) => void) | null

export interface Source {
  readyState: number
  onopen: Handler
  onerror: Handler
  addEventListener(name: string, listener: (event: globalThis.Event) => void): void
  close(): void
}

export interface World {
  open: (url: string) => Source
  now: () => number
  random: () => number
}

export const real: World = { open: (url) => new EventSource(url), now: () => Date.now(), random: Math.random }

interface Hooks {
  /** The address, with the place to resume from. */
  url: () => string
  message: (message: Message) => void
  state: (state: LiveState) => void
  /** It was opened. */
  opened?: () => void
  /** A refused stream may mean that the session ended. */
  refused: () => void
}

export class Stream {
  private source: Source | undefined
  private heard: number
  private tries = 0
  private silence: ReturnType<typeof setTimeout> | undefined
  private again: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly hooks: Hooks,
    private readonly world: World = real,
  ) {
    this.heard = world.now()
  }

  connect() {
    this.close()
    const source = this.world.open(this.hooks.url())
    this.source = source
    for (const kind of ['note', 'log', 'beat', 'reset'] as const) {
      source.addEventListener(kind, (event) => {
        if (this.source !== source) return
        const message = event as MessageEvent<string>
        this.alive()
        this.hooks.message({ kind, data: message.data, id: message.lastEventId })
      })
    }
    source.onopen = () => {
      if (this.source !== source) return
      this.alive()
      this.hooks.opened?.()
    }
    source.onerror = () => {
      if (this.source !== source) return
      if (source.readyState === 2) this.hooks.refused()
      this.lost()
    }
    this.watch()
  }

  /** Tries at once, as if nothing had failed. */
  retry() {
    this.tries = 0
    this.connect()
  }

  close() {
    clearTimeout(this.silence)
    clearTimeout(this.again)
    this.source?.close()
    this.source = undefined
  }

  private alive() {
    this.heard = this.world.now()
    this.tries = 0
    this.hooks.state({ is: 'live' })
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
    this.hooks.state({ is: 'stale', since: this.heard, next: this.world.now() + wait })
    this.again = setTimeout(() => this.connect(), wait)
  }
}
