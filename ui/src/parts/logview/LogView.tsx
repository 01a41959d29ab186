import { useQuery } from '@tanstack/react-query'
import { useRouterState } from '@tanstack/react-router'
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { matches, outline } from '../../api/queries'
import type { LogOutline } from '../../api/types'
import { Failure, Note } from '../../base/Failure'
import { formatRange, parseRange, type Range } from '../../lib/lines'
import { Loaded } from '../Loaded'
import { useLive } from '../live'
import { useOrg } from '../org'
import { usePrefs } from '../prefs'
import { useParamsState } from '../To'
import { LogBar } from './LogBar'
import { LogPages } from './pages'
import { Rows } from './Rows'
import styles from './LogView.module.css'

interface Props {
  log: string
  /** On its own page: lines are in the URL, and it fills the height. */
  page?: boolean
}

/** A log of any length: only what is seen is in memory. */
export function LogView({ log, page = false }: Props) {
  const org = useOrg()
  const query = useQuery({ ...outline(org.id, log), staleTime: Number.POSITIVE_INFINITY })
  return <Loaded query={query}>{(data) => <Opened key={log} outline={data} page={page} reload={() => void query.refetch()} />}</Loaded>
}

function Opened({ outline: it, page, reload }: { outline: LogOutline; page: boolean; reload: () => void }) {
  const org = useOrg()
  const live = useLive()
  const { wrap } = usePrefs()
  const [params, set] = useParamsState()
  const hash = useRouterState({ select: (state) => state.location.hash })
  const [picked, setPicked] = useState<Range | undefined>(() => (page ? parseRange(hash) : undefined))
  const store = useMemo(() => new LogPages(org.id, it.log_stream_id, it.lines), [org.id, it.log_stream_id])
  useSyncExternalStore(store.subscribe, store.snapshot)

  const [q, setQ] = useState(page ? (params.q ?? '') : '')
  const [regex, setRegex] = useState(page && params.regex === '1')
  const found = useQuery({ ...matches(org.id, it.log_stream_id, { q, regex: regex ? 'true' : undefined }), enabled: q !== '' })
  const hits = useMemo(() => (q === '' ? [] : (found.data?.lines ?? [])), [q, found.data])
  const [jump, setJump] = useState<{ line: number; n: number } | undefined>(() => (picked ? { line: picked.from, n: 0 } : undefined))
  const goTo = (line: number) => setJump((before) => ({ line, n: (before?.n ?? 0) + 1 }))

  useEffect(() => store.grow(it.lines), [store, it.lines])
  useEffect(() => () => store.stop(), [store])
  // Only a log that may grow is followed; the stream goes on where the outline ended.
  useEffect(() => {
    if (!it.open || !live) return
    return live.follow(it.log_stream_id, store.total, (lines) => store.take(lines))
  }, [it.open, it.log_stream_id, live, store])
  // A link that is opened while the page is there.
  useEffect(() => {
    if (!page) return
    const open = (text: string) => {
      const range = parseRange(text)
      if (!range) return
      setPicked(range)
      goTo(range.from)
    }
    const first = parseRange(hash)
    if (first && first.from !== jump?.line) open(hash)
    const changed = () => open(location.hash)
    window.addEventListener('hashchange', changed)
    return () => window.removeEventListener('hashchange', changed)
  }, [hash, page])

  const pick = (line: number, extend: boolean) => {
    const range = extend && picked ? { from: Math.min(picked.from, line), to: Math.max(picked.from, line) } : { from: line, to: line }
    setPicked(range)
    if (page) history.replaceState(history.state, '', `#${formatRange(range)}`)
  }

  return (
    <div className={page ? `${styles.view} ${styles.page}` : styles.view}>
      <LogBar
        outline={it}
        total={store.total}
        q={q}
        regex={regex}
        hits={hits}
        found={found.data}
        searching={found.isFetching}
        failure={found.error}
        onSearch={(text, asRegex) => {
          setQ(text)
          setRegex(asRegex)
          if (page) set({ q: text, regex: asRegex ? '1' : undefined })
        }}
        onJump={goTo}
        picked={picked}
      />
      {it.note && <Note role="neutral">{it.note}</Note>}
      {it.error && !page && (
        <Note role="bad">
          <span dir="auto">{it.error}</span>
        </Note>
      )}
      {store.error && <Failure error={{ message: store.error }} onRetry={reload} />}
      <Rows outline={it} store={store} wrap={wrap} hits={hits} q={regex ? '' : q} jump={jump} picked={picked} onPick={pick} page={page} />
    </div>
  )
}
