import { useEffect, useState } from 'react'
import styles from './Skeleton.module.css'

/** The shape of what loads; it appears only after 150 ms. */
export function Skeleton({ rows = 6, tall = false }: { rows?: number; tall?: boolean }) {
  const [shown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div aria-busy="true" className={styles.box}>
      <span className="visually-hidden" role="status">
        {shown ? 'Loading' : ''}
      </span>
      {shown &&
        Array.from({ length: rows }, (_, at) => (
          <div key={at} className={tall ? `${styles.row} ${styles.tall}` : styles.row}>
            <span style={{ width: `${18 + ((at * 7) % 14)}%` }} />
            <span style={{ width: `${10 + ((at * 5) % 9)}%` }} />
            <span style={{ width: `${24 + ((at * 11) % 20)}%` }} />
          </div>
        ))}
    </div>
  )
}
