import type { ReactNode } from 'react'
import { type Kind, type Role, statusLook } from '../lib/status'
import styles from './Chip.module.css'
import { Icon, type IconName } from './Icon'

/** A status as icon and word, in the colour of its role. */
export function Chip({ status, kind, bare, title }: { status: string | undefined | null; kind?: Kind; bare?: boolean; title?: string | undefined }) {
  const { role, icon, word } = statusLook(status, kind)
  return (
    <Mark role={role} icon={icon} bare={bare ?? false} title={title}>
      {word}
    </Mark>
  )
}

/** Any short word in the colour of a role. */
export function Mark({ role, icon, bare, title, children }: { role: Role; icon?: IconName; bare?: boolean; title?: string | undefined; children: ReactNode }) {
  return (
    <span className={[styles.chip, styles[role], bare && styles.bare].filter(Boolean).join(' ')} title={title}>
      {icon && <Icon name={icon} size={12} />}
      <bdi>{children}</bdi>
    </span>
  )
}
