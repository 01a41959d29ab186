/** The lines of one log that are in memory: pages of 200, at most 50 of them. */
import { asFailure } from '../../api/client'
import { lines as fetchLines } from '../../api/queries'
import type { LogLine, LogLines } from '../../api/types'
import { pagesOf } from '../../lib/lines'

export const SIZE = 200
const KEPT = 50

export class LogPages {
  private pages = new Map<number, (LogLine | undefined)[]>()
  private waiting = new Map<number, AbortController>()
  private wanted = new Set<number>()
  private version = 0
  private listeners = new Set<() => void>()
  total: number
  error: string | undefined

  constructor(
    private readonly org: string,
    private readonly log: string,
    total: number,
  ) {
    this.total = total
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  snapshot = () => this.version

  private changed() {
    this.version += 1
    for (const it of this.listeners) it()
  }

  stop() {
    for (const it of this.waiting.values()) it.abort()
    this.waiting.clear()
  }

  grow(total: number) {
    if (total <= this.total) return
    this.total = total
    this.changed()
  }

  line(n: number): LogLine | undefined {
    const page = Math.floor((n - 1) / SIZE)
    return this.pages.get(page)?.[(n - 1) % SIZE]
  }

  /** Fetches what is missing of lines `from` to `to`; what is no longer wanted is not waited for. */
  want(from: number, to: number) {
    const last = Math.min(to, this.total)
    this.wanted = new Set(last < from ? [] : pagesOf(from - 1, last, SIZE))
    for (const [page, abort] of this.waiting) {
      if (!this.wanted.has(page)) {
        abort.abort()
        this.waiting.delete(page)
      }
    }
    for (const page of this.wanted) if (!this.full(page) && !this.waiting.has(page)) void this.fetch(page)
  }

  private full(page: number): boolean {
    const lines = this.pages.get(page)
    if (!lines) return false
    const expected = Math.min(SIZE, this.total - page * SIZE)
    for (let index = 0; index < expected; index += 1) if (!lines[index]) return false
    return true
  }

  private async fetch(page: number) {
    const abort = new AbortController()
    this.waiting.set(page, abort)
    try {
      const found = await fetchLines(this.org, this.log, page * SIZE + 1, SIZE, abort.signal)
      this.error = undefined
      this.take(found)
    } catch (error) {
      if (abort.signal.aborted) return
      this.error = asFailure(error).message
      this.changed()
    } finally {
      if (this.waiting.get(page) === abort) this.waiting.delete(page)
    }
  }

  /** Lines from an answer or from the live stream; what is known already is written over with the same. */
  take(found: LogLines) {
    for (const line of found.lines) {
      const page = Math.floor((line.n - 1) / SIZE)
      let lines = this.pages.get(page)
      if (!lines) {
        lines = []
        this.pages.set(page, lines)
      }
      lines[(line.n - 1) % SIZE] = line
    }
    this.total = Math.max(this.total, found.total, found.lines.at(-1)?.n ?? 0)
    this.forget()
    this.changed()
  }

  /** Keeps the pages on screen and the latest others. */
  private forget() {
    for (const page of this.pages.keys()) {
      if (this.pages.size <= KEPT) return
      if (!this.wanted.has(page)) this.pages.delete(page)
    }
  }
}
