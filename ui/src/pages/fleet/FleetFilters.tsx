import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { path, post, remove } from '../../api/client'
import { views } from '../../api/queries'
import type { Facet, FleetFacets } from '../../api/types'
import { Button } from '../../base/Button'
import { Check, TextField } from '../../base/Field'
import { Icon } from '../../base/Icon'
import { Menu } from '../../base/Menu'
import { statusLook, type Kind } from '../../lib/status'
import { Confirm } from '../../parts/act'
import { useOrg } from '../../parts/org'
import { useGo } from '../../parts/To'
import styles from './Fleet.module.css'

export const filterNames = ['q', 'labels', 'app', 'status', 'drift', 'health', 'runner', 'version', 'platform'] as const

interface Props {
  facets: FleetFacets
  params: Record<string, string | undefined>
  set: (change: Record<string, string | undefined>) => void
}

export function FleetFilters({ facets, params, set }: Props) {
  return (
    <div className={styles.bar}>
      <Text id="fleet-q" label="Name" placeholder="Name or id" value={params.q ?? ''} onChange={(q) => set({ q })} />
      <Text id="fleet-labels" label="Labels" placeholder="env=prod,!old" value={params.labels ?? ''} onChange={(labels) => set({ labels })} list={facets.label} />
      <Pick name="app" label="App" facets={facets.app} params={params} set={set} />
      <Pick name="status" label="Status" kind="component" facets={facets.status} params={params} set={set} />
      <Pick name="drift" label="Drift" kind="drift" facets={facets.drift} params={params} set={set} />
      <Pick name="runner" label="Runner" kind="runner" facets={facets.runner} params={params} set={set} />
      <Pick name="health" label="Health" kind="health" facets={facets.health} params={params} set={set} />
      <Pick name="version" label="Version" facets={[{ value: 'outdated', name: 'outdated', count: 0 }, ...facets.version]} params={params} set={set} />
      <Pick name="platform" label="Cloud" facets={facets.platform} params={params} set={set} />
      {filterNames.some((it) => params[it]) && (
        <Button kind="quiet" small onClick={() => set(Object.fromEntries(filterNames.map((it) => [it, undefined])))}>
          <Icon name="close" size={12} /> Clear
        </Button>
      )}
      <ViewsMenu params={params} />
    </div>
  )
}

/** A field that waits for the end of a word before it asks the server. */
export function Text({ id, label, placeholder, value, onChange, list }: { id?: string; label: string; placeholder?: string; value: string; onChange: (value: string) => void; list?: Facet[] | undefined }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), 200)
    return () => clearTimeout(timer)
    // Only what is typed starts the wait.
  }, [text])
  return (
    <>
      <input
        id={id}
        type="search"
        dir="auto"
        className={styles.input}
        aria-label={label}
        placeholder={placeholder}
        value={text}
        list={list && id ? `${id}-list` : undefined}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange(text)
        }}
        autoComplete="off"
        spellCheck={false}
      />
      {list && id && (
        <datalist id={`${id}-list`}>
          {list.slice(0, 50).map((it) => (
            <option key={it.value} value={it.value} />
          ))}
        </datalist>
      )}
    </>
  )
}

interface PickProps extends Omit<Props, 'facets'> {
  name: string
  label: string
  kind?: Kind
  facets: Facet[]
}

function Pick({ name, label, kind, facets, params, set }: PickProps) {
  const value = params[name] ?? ''
  const known = facets.filter((it) => it.count > 0 || it.value === value || it.value === 'outdated')
  if (known.length < 2 && value === '') return null
  const word = (it: Facet) => it.name || (it.value === 'unset' ? 'not observed' : kind ? statusLook(it.value, kind).word : it.value)
  return (
    <select className={value ? `${styles.select} ${styles.chosen}` : styles.select} aria-label={label} value={value} onChange={(event) => set({ [name]: event.target.value })}>
      <option value="">{label}: all</option>
      {value && !known.some((it) => it.value === value) && <option value={value}>{value}</option>}
      {known.map((it) => (
        <option key={it.value} value={it.value}>
          {word(it)}
          {it.count > 0 ? ` (${it.count})` : ''}
        </option>
      ))}
    </select>
  )
}

/** Filters that were saved, and saving this one. */
function ViewsMenu({ params }: { params: Record<string, string | undefined> }) {
  const org = useOrg()
  const go = useGo()
  const query = useQuery(views(org.id))
  const [saving, setSaving] = useState(false)
  const [name, setName] = useState('')
  const [shared, setShared] = useState(false)
  const text = new URLSearchParams(Object.entries(params).filter((it): it is [string, string] => Boolean(it[1]))).toString()
  const current = query.data?.find((it) => it.query === text)
  return (
    <>
      <Menu
        kind="quiet"
        small
        label="Views"
        items={[
          ...(query.data ?? []).map((it) => ({
            key: it.id,
            label: <bdi>{it.name}</bdi>,
            note: it.shared ? (it.mine ? 'shared by you' : 'shared') : 'yours',
            checked: it.query === text,
            onSelect: () => go(`${org.to.fleet}?${it.query}`),
          })),
          { key: 'save', label: 'Save this view', reason: text === '' ? 'Filter first' : current ? 'It is saved' : undefined, onSelect: () => setSaving(true) },
          ...(current?.mine ? [{ key: 'remove', label: `Delete “${current.name}”`, danger: true, onSelect: () => void remove(path`/v1/views/${current.id}`, { org: org.id }).then(() => query.refetch()) }] : []),
        ]}
      />
      <Confirm
        open={saving}
        onClose={() => setSaving(false)}
        title="Save this view"
        label="Save"
        reason={name.trim() === '' ? 'Give it a name.' : undefined}
        perform={(idempotency) => post('/v1/views', { org: org.id, body: { name: name.trim(), query: text, shared }, idempotency })}
        then={() => setName('')}
      >
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} maxLength={80} />
        <Check label="Everybody of the org sees it" checked={shared} onChange={(event) => setShared(event.target.checked)} />
      </Confirm>
    </>
  )
}
