import { useRef, useState } from 'react'
import type { LogMatches, LogOutline } from '../../api/types'
import { asFailure, path } from '../../api/client'
import { Button } from '../../base/Button'
import { Icon } from '../../base/Icon'
import { count } from '../../lib/format'
import type { Range } from '../../lib/lines'
import { useOrg } from '../org'
import { setPrefs, usePrefs } from '../prefs'
import { useShortcuts } from '../shortcuts'
import styles from './LogView.module.css'

interface Props {
  outline: LogOutline
  total: number
  q: string
  regex: boolean
  hits: number[]
  found: LogMatches | undefined
  searching: boolean
  failure: unknown
  picked: Range | undefined
  onSearch: (text: string, regex: boolean) => void
  onJump: (line: number) => void
}

/** Search over the whole log on the server, jumps between hits and failures, and how lines look. */
export function LogBar({ outline, total, q, regex, hits, found, searching, failure, picked, onSearch, onJump }: Props) {
  const org = useOrg()
  const prefs = usePrefs()
  const [text, setText] = useState(q)
  const at = useRef(-1)
  const input = useRef<HTMLInputElement>(null)
  const failures = outline.failures ?? []
  const [place, setPlace] = useState(0)

  const step = (by: number) => {
    if (hits.length === 0) return
    at.current = (at.current + by + hits.length) % hits.length
    setPlace(at.current + 1)
    onJump(hits[at.current] ?? 1)
  }
  const failureFrom = useRef(0)
  const nextFailure = () => {
    const next = failures.find((line) => line > failureFrom.current) ?? failures[0]
    if (next === undefined) return
    failureFrom.current = next
    onJump(next)
  }
  useShortcuts([
    { keys: '/', does: 'Search the log', run: () => input.current?.focus() },
    { keys: 'n', does: 'Next hit', run: () => step(1) },
    { keys: 'N', does: 'Previous hit', run: () => step(-1) },
    { keys: 'f', does: 'Next failure', run: nextFailure },
    { keys: 'w', does: 'Wrap long lines', run: () => setPrefs({ wrap: !prefs.wrap }) },
  ])

  const copyLink = () => {
    void navigator.clipboard?.writeText(location.href)
  }

  return (
    <div className={styles.bar}>
      <form
        className={styles.searching}
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          if (text === q && hits.length > 0) step(1)
          else {
            at.current = -1
            setPlace(0)
            onSearch(text, regex)
          }
        }}
      >
        <input
          ref={input}
          type="search"
          className={styles.input}
          aria-label="Search the log"
          placeholder="Search the whole log"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            if (event.target.value === '') onSearch('', regex)
          }}
          dir="auto"
          autoComplete="off"
          spellCheck={false}
        />
        <Button small kind={regex ? 'primary' : 'plain'} aria-pressed={regex} aria-label="Regular expression" onClick={() => onSearch(text, !regex)}>
          .*
        </Button>
      </form>
      {q !== '' && (
        <span className="row" role="status">
          <span className="small nowrap">
            {failure ? asFailure(failure).message : searching && !found ? 'searching' : `${place > 0 ? `${place} of ` : ''}${count(found?.total ?? hits.length)}${found?.more ? '+' : ''} lines`}
          </span>
          <Button small kind="quiet" aria-label="Previous hit" onClick={() => step(-1)}>
            <Icon name="up" size={12} />
          </Button>
          <Button small kind="quiet" aria-label="Next hit" onClick={() => step(1)}>
            <Icon name="down" size={12} />
          </Button>
        </span>
      )}
      {failures.length > 0 && (
        <Button small onClick={nextFailure}>
          <Icon name="cross" size={12} /> {count(outline.failures_total ?? failures.length)} {failures.length === 1 ? 'failure' : 'failures'}
        </Button>
      )}
      <span className={styles.right}>
        <span className="muted small nowrap">{count(total)} lines</span>
        {picked && (
          <Button small onClick={copyLink}>
            Copy link to L{picked.from}
            {picked.to !== picked.from && `-L${picked.to}`}
          </Button>
        )}
        <Button small aria-pressed={prefs.wrap} kind={prefs.wrap ? 'primary' : 'plain'} onClick={() => setPrefs({ wrap: !prefs.wrap })}>
          Wrap
        </Button>
        <Button small aria-pressed={prefs.times} kind={prefs.times ? 'primary' : 'plain'} onClick={() => setPrefs({ times: !prefs.times })}>
          Time
        </Button>
        <a className={styles.download} href={`${path`/v1/log-streams/${outline.log_stream_id}/logs`}?format=text&org_id=${encodeURIComponent(org.id)}`} download={`${outline.log_stream_id}.log`}>
          <Icon name="download" size={14} /> Download
        </a>
      </span>
    </div>
  )
}
