import type { Icon as StatusIcon } from '../lib/status'
import styles from './Icon.module.css'

export type IconName =
  | StatusIcon
  | 'search' | 'menu' | 'down' | 'right' | 'up' | 'copy' | 'close' | 'plus' | 'minus' | 'tilde' | 'external' | 'moon' | 'keyboard' | 'shield' | 'download'

/** Strokes on a 16 by 16 grid. */
const strokes: Record<IconName, string> = {
  circle: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11',
  dash: 'M3.5 8h9',
  skip: 'M3.5 4l4 4l-4 4M8.5 4l4 4l-4 4',
  square: 'M3.5 3.5h9v9h-9z',
  never: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M3 13L13 3',
  replaced: 'M3.5 9a4.5 4.5 0 1 0 1.5-4.5M4.5 1.8v3.2h3.2',
  dotted: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11',
  half: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11',
  diamond: 'M8 1.5L14.5 8L8 14.5L1.5 8z',
  check: 'M2.5 8.5l3.5 3.5l7.5-8',
  dot: 'M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10',
  link: 'M5 13V3M2.5 5.5L5 3l2.500 2.500M11 3v10M8.500 10.500L11 13l2.500-2.500',
  equal: 'M3 6h10M3 10h10',
  unequal: 'M3 6h10M3 10h10M10.500 3l-5 10',
  hourglass: 'M4 2.500h8M4 13.500h8M5 2.500c0 3 6 4 6 5.500s-6 2.500-6 5.500M11 2.500c0 3-6 4-6 5.500s6 2.500 6 5.500',
  power: 'M8 2v6M4.800 4.300a5 5 0 1 0 6.400 0',
  drain: 'M8 2.500v10.500M4 9l4 4l4-4',
  bang: 'M8 2L14.500 13.500h-13zM8 6.500v3M8 11.300v.4',
  cross: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  timeout: 'M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 1 0 0-11M8 5v3.500l2.500 1.500',
  denied: 'M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 1 0 0-11M5 8h6',
  offline: 'M2 8h3l1.500-4l3 8L11 8h3M3 13L13 3',
  question: 'M5.500 6a2.500 2.500 0 1 1 3.500 2.300c-.7.4-1 .8-1 1.700M8 12.500v.4',
  search: 'M7 2.500a4.500 4.500 0 1 0 0 9a4.500 4.500 0 1 0 0-9M10.500 10.500L14 14',
  menu: 'M2.500 4.500h11M2.500 8h11M2.500 11.500h11',
  down: 'M4 6l4 4l4-4',
  right: 'M6 4l4 4l-4 4',
  up: 'M4 10l4-4l4 4',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  close: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  tilde: 'M2.500 9.500c1.500-4 4-3 5.500-1.500s4 2.500 5.500-1.500',
  external: 'M6 3H3v10h10v-3M9 3h4v4M13 3L7.500 8.500',
  moon: 'M13.500 9.500A6 6 0 1 1 6.500 2.500a5 5 0 0 0 7 7z',
  keyboard: 'M1.500 4h13v8h-13zM4 7h.5M7 7h.5M10 7h.5M5 9.800h6',
  shield: 'M8 2l5 2v4c0 3-2 5-5 6c-3-1-5-3-5-6V4z',
  download: 'M8 2.500v7.500M4.500 7L8 10.500L11.500 7M3 13.500h10',
}

/** Decoration beside a word; a control that has only an icon needs its own label. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg className={styles.icon} width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {name === 'half' && <path d="M8 2.500a5.500 5.500 0 0 1 0 11z" className={styles.solid} />}
      <path d={strokes[name]} className={name === 'dot' || name === 'diamond' ? styles.solid : name === 'dotted' ? styles.dashed : undefined} />
    </svg>
  )
}
