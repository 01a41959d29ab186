import { type ReactNode, useEffect } from 'react'
import { Command } from '../base/Id'
import styles from './Page.module.css'
import { To } from './To'

interface Props {
  title: ReactNode
  /** The title of the tab, where `title` is not a text. */
  name?: string
  crumbs?: { to: string; name: ReactNode }[]
  chips?: ReactNode
  actions?: ReactNode
  /** The command that shows the same in a terminal. */
  command?: string | undefined
  children: ReactNode
}

export function useTitle(name: string | undefined) {
  useEffect(() => {
    document.title = name ? `${name} · Ferry` : 'Ferry'
  }, [name])
}

/** Title, what may be done, and the command that does the same. */
export function Page({ title, name, crumbs, chips, actions, command, children }: Props) {
  useTitle(name ?? (typeof title === 'string' ? title : undefined))
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <div className={styles.titles}>
          {crumbs && (
            <nav aria-label="Up" className={styles.crumbs}>
              {crumbs.map((it) => (
                <span key={it.to}>
                  <To to={it.to}>
                    <bdi>{it.name}</bdi>
                  </To>
                  <span aria-hidden="true"> / </span>
                </span>
              ))}
            </nav>
          )}
          <h1 className={styles.title}>
            <bdi>{title}</bdi>
          </h1>
          {chips}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
      {children}
      {command && <CommandLine text={command} />}
    </div>
  )
}

export function CommandLine({ text }: { text: string }) {
  return (
    <p className={styles.command}>
      <span className="muted small">In a terminal</span> <Command text={text} />
    </p>
  )
}

/** A titled block of a page. */
export function Section({ title, actions, children, id }: { title: ReactNode; actions?: ReactNode; children: ReactNode; id?: string }) {
  return (
    <section className={styles.section} id={id}>
      <div className={styles.sectionHead}>
        <h2>{title}</h2>
        {actions && <div className="row">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** Name and value, side by side. */
export function Facts({ facts }: { facts: [ReactNode, ReactNode][] }) {
  return (
    <dl className={styles.facts}>
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0))
        .map(([name, value], at) => (
          <div key={typeof name === 'string' ? name : at}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
