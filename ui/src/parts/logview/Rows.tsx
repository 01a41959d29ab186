import { type KeyboardEvent, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import type { LogOutline } from '../../api/types'
import { Button } from '../../base/Button'
import { ZoneContext } from '../../base/Time'
import { at, layout, rowOf, sectionOf } from '../../lib/fold'
import { plural } from '../../lib/format'
import { type Range, ROW, scrollFor, topRow, totalHeight } from '../../lib/lines'
import { useLiveState } from '../live'
import { usePrefs } from '../prefs'
import { useShortcuts } from '../shortcuts'
import { Line, SectionHead } from './Line'
import type { LogPages } from './pages'
import styles from './LogView.module.css'

interface Props {
  outline: LogOutline
  store: LogPages
  wrap: boolean
  hits: number[]
  q: string
  jump: { line: number; n: number } | undefined
  picked: Range | undefined
  onPick: (line: number, extend: boolean) => void
  page: boolean
}

const EXTRA = 10
/** Wrapped lines have any height: so many are drawn at once. */
const WRAPPED = 300

/** The rows that are seen. The row at the top is the truth; the scroll bar is derived from it. */
export function Rows({ outline, store, wrap, hits, q, jump, picked, onPick, page }: Props) {
  const zone = useContext(ZoneContext)
  const { times } = usePrefs()
  const live = useLiveState()
  const box = useRef<HTMLDivElement>(null)
  const [viewport, setViewport] = useState(600)
  const [top, setTop] = useState(0)
  const own = useRef(-1)
  const total = store.total
  const sections = outline.sections
  const [folds, setFolds] = useState<Record<number, boolean>>({})
  const opened = useMemo(() => {
    const failed = sections.findIndex((it) => it.status === 'failed')
    return failed >= 0 ? failed : sections.length - 1
  }, [sections])
  // Short logs are shown whole; of long ones, the step that failed, or the last.
  const folded = (section: number) => folds[section] ?? (total > 400 && sections.length > 1 && section !== opened)
  const { pieces, rows } = useMemo(() => layout(sections.length > 1 ? sections : [], total, folded), [sections, total, folds, opened])
  const view = { count: rows, viewport }
  const bottom = Math.max(0, rows - viewport / ROW)
  const [following, setFollowing] = useState(outline.open && !jump)
  const [unseen, setUnseen] = useState(total)
  const hitSet = useMemo(() => new Set(hits), [hits])

  const put = (row: number, follow = false) => {
    const next = Math.min(bottom, Math.max(0, row))
    setTop(next)
    setFollowing(follow || (outline.open && next >= bottom - 0.5))
    const element = box.current
    if (element && !wrap) {
      own.current = scrollFor(view, next)
      element.scrollTop = own.current
    }
  }

  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new ResizeObserver(() => setViewport(element.clientHeight))
    observer.observe(element)
    setViewport(element.clientHeight)
    return () => observer.disconnect()
  }, [])

  // New lines: whoever follows stays at the end, whoever reads stays where they are.
  useLayoutEffect(() => {
    if (following) {
      put(bottom, true)
      setUnseen(total)
    }
  }, [rows, viewport, following, wrap])

  useEffect(() => {
    if (!jump) return
    const section = sections.length > 1 ? sectionOf(sections, jump.line) : undefined
    if (section !== undefined && folded(section)) setFolds((before) => ({ ...before, [section]: false }))
    setFollowing(false)
  }, [jump])
  const jumped = useRef<number>(undefined)
  useLayoutEffect(() => {
    if (!jump || jumped.current === jump.n) return
    const row = rowOf(pieces, jump.line)
    if (row === undefined) return
    jumped.current = jump.n
    put(row - Math.floor(viewport / ROW / 3))
  }, [jump, pieces, viewport])

  const from = Math.max(0, Math.floor(top) - (wrap ? 0 : EXTRA))
  const to = Math.min(rows, wrap ? from + WRAPPED : Math.ceil(top + viewport / ROW) + EXTRA)
  const shown: { row: number; it: { line: number } | { section: number } }[] = []
  for (let row = from; row < to; row += 1) {
    const it = at(pieces, row)
    if (it) shown.push({ row, it })
  }
  const numbers = shown.flatMap(({ it }) => ('line' in it ? [it.line] : []))
  const first = numbers[0]
  const last = numbers.at(-1)
  useEffect(() => {
    if (first === undefined || last === undefined) return
    // A fast scroll passes over pages that nobody reads.
    const timer = setTimeout(() => store.want(first, last), store.line(first) ? 0 : 40)
    return () => clearTimeout(timer)
  }, [first, last, store])

  useShortcuts([
    { keys: 'G', does: 'Follow the end', run: () => put(bottom, outline.open) },
  ])

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current || wrap) return
    const pageRows = Math.max(1, Math.floor(viewport / ROW) - 2)
    const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: pageRows, PageUp: -pageRows }
    const move = by[event.key]
    if (move !== undefined) put(top + move)
    else if (event.key === 'Home') put(0)
    else if (event.key === 'End') put(bottom, outline.open)
    else return
    event.preventDefault()
  }

  // Scaled lists would jump over lines with each turn of the wheel.
  const scaled = rows * ROW > totalHeight(view)
  useEffect(() => {
    const element = box.current
    if (!element || !scaled || wrap) return
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return
      event.preventDefault()
      const pixels = event.deltaMode === 1 ? event.deltaY * ROW : event.deltaY
      put(top + pixels / ROW)
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  })

  const line = (it: { line: number } | { section: number }, style?: { top: number }) =>
    'section' in it ? (
      <SectionHead
        key={`s${it.section}`}
        section={sections[it.section]}
        folded={folded(it.section)}
        style={style}
        onToggle={() => setFolds({ ...folds, [it.section]: !folded(it.section) })}
      />
    ) : (
      <Line
        key={it.line}
        n={it.line}
        line={store.line(it.line)}
        zone={times ? zone : undefined}
        hit={hitSet.has(it.line)}
        q={hitSet.has(it.line) ? q : ''}
        picked={picked !== undefined && it.line >= picked.from && it.line <= picked.to}
        onPick={onPick}
        wrap={wrap}
        style={style}
      />
    )

  const fresh = total - unseen
  return (
    <div className={styles.frame}>
      {sections.length > 1 && (
        <nav className={styles.steps} aria-label="Steps of the log">
          {sections.map((it, index) => (
            <button
              key={`${it.epoch ?? 1} ${it.name} ${it.from}`}
              type="button"
              className={styles.step}
              onClick={() => {
                setFolds({ ...folds, [index]: false })
                setTimeout(() => {
                  const row = rowOf(layout(sections, total, (other) => (other === index ? false : folded(other))).pieces, it.from)
                  if (row !== undefined) put(row - 1)
                }, 0)
              }}
            >
              <SectionHead section={it} plain />
            </button>
          ))}
        </nav>
      )}
      <div className={styles.scrolling}>
        <div
          ref={box}
          className={page ? `${styles.box} ${styles.tall}` : styles.box}
          tabIndex={0}
          role="region"
          aria-label="Log"
          onKeyDown={onKeyDown}
          onScroll={(event) => {
            if (wrap) return
            const now = event.currentTarget.scrollTop
            if (Math.abs(now - own.current) < 1) return
            own.current = -1
            const next = topRow(view, now)
            setTop(next)
            setFollowing(outline.open && next >= bottom - 0.5)
          }}
        >
          {rows === 0 && <p className={styles.none}>{outline.open ? 'Nothing was printed yet.' : 'Nothing was printed.'}</p>}
          {wrap ? (
            <>
              {from > 0 && (
                <Button small onClick={() => put(Math.max(0, from - WRAPPED))}>
                  Earlier lines
                </Button>
              )}
              {shown.map(({ it }) => line(it))}
              {to < rows && (
                <Button small onClick={() => put(to)}>
                  Later lines
                </Button>
              )}
            </>
          ) : (
            <div className={styles.space} style={{ height: totalHeight(view) }}>
              <div className={styles.window}>{shown.map(({ row, it }) => line(it, { top: (row - top) * ROW }))}</div>
            </div>
          )}
        </div>
        {outline.open && !following && (
          <div className={styles.follow}>
            <Button small kind="primary" onClick={() => put(bottom, true)}>
              {fresh > 0 ? `${plural(fresh, 'new line')}: follow` : 'Follow'}
            </Button>
          </div>
        )}
        {outline.open && live.is === 'stale' && <p className={styles.lost}>Not live: lines may be missing at the end until the stream is back.</p>}
      </div>
    </div>
  )
}
