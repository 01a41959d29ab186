import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { search } from '../../api/queries'
import type { SearchItem } from '../../api/types'
import { Chip } from '../../base/Chip'
import { Dialog } from '../../base/Dialog'
import { useOrg } from '../org'
import { recent } from '../prefs'
import { useAllShortcuts } from '../shortcuts'
import { useGo } from '../To'
import type { Kind } from '../../lib/status'
import type { Paths } from '../paths'
import styles from './Palette.module.css'

interface Option {
  key: string
  group: string
  name: string
  note?: string | undefined
  status?: string | undefined
  kind?: Kind
  run: () => void
}

/** Where a found thing is shown. */
export function placeOf(to: Paths, it: SearchItem): string {
  if (it.kind === 'install') return to.install(it.id)
  if (it.kind === 'app') return to.app(it.id)
  if (it.kind === 'workflow') return to.run(it.id)
  if (it.kind === 'runner') return to.runner(it.id)
  if (it.kind === 'job') return to.job(it.id)
  if (it.kind === 'build') return to.build(it.id)
  if (it.kind === 'component' && it.install_id) return to.component(it.install_id, it.name)
  if (it.kind === 'component' && it.app_id) return to.app(it.app_id, 'components')
  if (it.kind === 'action' && it.install_id) return to.install(it.install_id, 'actions')
  if (it.kind === 'runbook' && it.install_id) return to.install(it.install_id, 'runbooks')
  if (it.install_id) return to.install(it.install_id)
  return it.app_id ? to.app(it.app_id) : to.fleet
}

/** Go to anything, or do what this page offers. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Search and commands" wide>
      {open && <Box onClose={onClose} />}
    </Dialog>
  )
}

function Box({ onClose }: { onClose: () => void }) {
  const org = useOrg()
  const go = useGo()
  const shortcuts = useAllShortcuts()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()
  const wanted = useDelayed(useDeferredValue(text.trim()))
  const found = useQuery({ ...search(org.id, wanted), enabled: wanted.length > 0, placeholderData: keepPreviousData, staleTime: 5_000 })

  const options = useMemo<Option[]>(() => {
    const word = text.trim().toLowerCase()
    const fits = (name: string) => word === '' || name.toLowerCase().includes(word)
    const visit = (to: string) => () => {
      onClose()
      go(to)
    }
    const pages: [string, string][] = [
      ['Fleet', org.to.fleet],
      ['Approvals', org.to.approvals],
      ['Runs', org.to.workflows],
      ['Apps', org.to.apps],
      ['Runners', org.to.runners],
      ['Audit', org.to.audit],
      ['Members', org.to.settings('members')],
      ['Tokens', org.to.settings('tokens')],
      ['Source logins', org.to.settings('sources')],
      ['Log retention', org.to.settings('logs')],
      ['New install', org.to.newInstall()],
    ]
    const things = wanted === '' ? [] : (found.data?.items ?? [])
    return [
      ...things.map((it) => ({ key: `${it.kind} ${it.id} ${it.install_id ?? ''}`, group: 'Found', name: it.name, note: [it.kind, it.of].filter(Boolean).join(' of '), status: it.status, kind: (it.kind === 'install' ? 'component' : it.kind) as Kind, run: visit(placeOf(org.to, it)) })),
      ...(word === '' ? recent(org.id).map((it) => ({ key: `recent ${it.to}`, group: 'Recent', name: it.name, note: it.kind, run: visit(it.to) })) : []),
      ...shortcuts
        .filter((it) => it.keys !== 'mod+k' && !it.keys.startsWith('g ') && fits(it.does))
        .map((it) => ({
          key: `do ${it.keys}`,
          group: 'On this page',
          name: it.does,
          note: it.keys,
          run: () => {
            onClose()
            // The dialog gives the focus back first.
            setTimeout(it.run, 0)
          },
        })),
      ...pages.filter(([name]) => fits(name)).map(([name, to]) => ({ key: `go ${name}`, group: 'Go to', name, run: visit(to) })),
    ]
  }, [text, wanted, found.data, org, shortcuts, go, onClose])

  useEffect(() => setAt(0), [text, options.length])
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at])

  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      setAt((at + step + options.length) % Math.max(1, options.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      options[at]?.run()
    }
  }

  return (
    <div className={styles.box}>
      <input
        data-autofocus
        className={styles.input}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        placeholder="Install, app, run, runner, id, or a page"
        role="combobox"
        aria-label="Search"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={options[at] ? `${id}-${at}` : undefined}
        autoComplete="off"
        spellCheck={false}
        dir="auto"
      />
      <div ref={list} id={id} role="listbox" aria-label="Results" className={styles.list}>
        {options.map((it, index) => (
          <div key={it.key} role="presentation">
            {it.group !== options[index - 1]?.group && (
              <div role="presentation" className={styles.group}>
                {it.group}
              </div>
            )}
            <div id={`${id}-${index}`} role="option" aria-selected={index === at} className={styles.option} onClick={it.run} onPointerMove={() => setAt(index)}>
              <bdi className={styles.name}>{it.name}</bdi>
              {it.note && <bdi className={styles.note}>{it.note}</bdi>}
              {it.status && <Chip status={it.status} {...(it.kind ? { kind: it.kind } : {})} bare />}
            </div>
          </div>
        ))}
      </div>
      <p className="muted small" role="status">
        {found.isError ? 'The search failed; try again.' : options.length === 0 ? `Nothing is called “${text.trim()}”.` : ''}
      </p>
    </div>
  )
}

function useDelayed(value: string): string {
  const [late, setLate] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), 120)
    return () => clearTimeout(timer)
  }, [value])
  return late
}
