import { memo, type CSSProperties, type ReactNode } from 'react'
import type { LogLine, LogSection } from '../../api/types'
import { Icon } from '../../base/Icon'
import { parseLine, type Span } from '../../lib/ansi'
import { bytes } from '../../lib/format'
import { statusLook } from '../../lib/status'
import { clock, duration, parseTime, type Zone } from '../../lib/time'
import styles from './LogView.module.css'

interface Props {
  n: number
  line: LogLine | undefined
  zone: Zone | undefined
  hit: boolean
  q: string
  picked: boolean
  wrap: boolean
  style?: CSSProperties | undefined
  onPick: (line: number, extend: boolean) => void
}

/** One line: its number (a link), its time, its text. */
export const Line = memo(
  function Line({ n, line, zone, hit, q, picked, wrap, style, onPick }: Props) {
    const parsed = line ? parseLine(line.text) : undefined
    const cut = (line?.cut_bytes ?? 0) + (parsed?.cut ?? 0)
    const names = [styles.line, wrap && styles.wrapped, hit && styles.hit, picked && styles.picked, line?.pipe === 'stderr' && styles.stderr, line?.pipe === 'system' && styles.system]
    return (
      <div className={names.filter(Boolean).join(' ')} style={style}>
        <a
          href={`#L${n}`}
          className={styles.number}
          tabIndex={-1}
          onClick={(event) => {
            event.preventDefault()
            onPick(n, event.shiftKey)
          }}
        >
          {n}
        </a>
        {zone && <span className={styles.time}>{line ? clock(parseTime(line.time) ?? 0, zone) : ''}</span>}
        <span className={styles.text} dir="ltr">
          {(line?.gap_bytes ?? 0) > 0 && <span className={styles.gap}>--- gap: {bytes(line?.gap_bytes ?? 0)} missing ---{line?.text ? ' ' : ''}</span>}
          {parsed ? marked(parsed.spans, q) : <span className={styles.wait}>…</span>}
          {cut > 0 && <span className={styles.gap}> --- cut: {bytes(cut)} more, download the log for the rest ---</span>}
        </span>
      </div>
    )
  },
  (a, b) => a.n === b.n && a.line === b.line && a.zone === b.zone && a.hit === b.hit && a.q === b.q && a.picked === b.picked && a.wrap === b.wrap && a.style?.top === b.style?.top && a.onPick === b.onPick,
)

/** The spans, with what the search found marked. */
function marked(spans: Span[], q: string): ReactNode {
  const word = q.toLowerCase()
  return spans.map((span, at) => {
    const names = [span.colour && styles[span.colour], span.bold && styles.bold, span.dim && styles.dim, span.underline && styles.underline, span.inverse && styles.inverse].filter(Boolean).join(' ')
    return (
      <span key={at} className={names || undefined}>
        {word === '' ? span.text : pieces(span.text, word)}
      </span>
    )
  })
}

function pieces(text: string, word: string): ReactNode {
  const parts: ReactNode[] = []
  const low = text.toLowerCase()
  // Letters whose lower case is longer would shift the marks.
  if (low.length !== text.length) return text
  let from = 0
  for (let at = low.indexOf(word); at >= 0 && parts.length < 200; at = low.indexOf(word, at + word.length)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + word.length)}</mark>)
    from = at + word.length
  }
  parts.push(text.slice(from))
  return parts
}

const statuses: Record<string, string> = { running: 'in-progress', done: 'success', failed: 'failed' }

/** The header of a step in the log, and its entry beside it. */
export function SectionHead({ section, folded, plain, style, onToggle }: { section: LogSection | undefined; folded?: boolean; plain?: boolean; style?: CSSProperties | undefined; onToggle?: () => void }) {
  if (!section) return null
  const look = statusLook(statuses[section.status ?? ''] ?? section.status ?? 'success', 'step')
  const inside = (
    <>
      {!plain && <Icon name={folded ? 'right' : 'down'} size={12} />}
      <span className={styles[look.role]}>
        <Icon name={look.icon} size={12} />
      </span>
      <bdi className={styles.stepName}>{section.name}</bdi>
      {(section.epoch ?? 1) > 1 && <span className="muted small">try {section.epoch}</span>}
      <span className="visually-hidden">{look.word}</span>
      {section.took_ms !== undefined && <span className="muted small nowrap">{duration(section.took_ms)}</span>}
    </>
  )
  if (plain) return inside
  return (
    <button type="button" className={styles.head} style={style} aria-expanded={!folded} onClick={onToggle}>
      {inside}
    </button>
  )
}
