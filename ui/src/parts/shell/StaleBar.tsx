import { useContext } from 'react'
import { Button } from '../../base/Button'
import { useNow, ZoneContext } from '../../base/Time'
import { clock } from '../../lib/time'
import { useLive, useLiveState } from '../live'
import styles from './StaleBar.module.css'

/** Says since when the page may be old, and when it tries again. */
export function StaleBar() {
  const state = useLiveState()
  const live = useLive()
  const zone = useContext(ZoneContext)
  const now = useNow(1)
  // A try that succeeds within a moment is no news.
  if (state.is !== 'stale' || now - state.since < 2000) return null
  const wait = Math.max(0, Math.ceil((state.next - now) / 1000))
  return (
    <div className={styles.bar}>
      <span role="status">Not live since {clock(state.since, zone)}. What you see may be old.</span>
      <span>Next try in {wait} s</span>
      <Button small onClick={() => live?.retry()}>
        Try now
      </Button>
    </div>
  )
}
