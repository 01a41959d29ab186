import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams, useRouterState } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState } from 'react'
import { frame, session } from '../../api/queries'
import { ZoneContext } from '../../base/Time'
import { Empty } from '../../base/Failure'
import { rememberOrg, slugOf } from '../../pages/Home'
import { Loaded } from '../Loaded'
import { LiveProvider } from '../live'
import { OrgContext, type OrgHere } from '../org'
import { paths } from '../paths'
import { usePrefs } from '../prefs'
import { useShortcutKeys, useShortcuts } from '../shortcuts'
import { Toasts } from '../toasts'
import { useGo } from '../To'
import { Header } from './Header'
import { Help } from './Help'
import { Palette } from '../palette/Palette'
import { StaleBar } from './StaleBar'
import styles from './Shell.module.css'

/** The frame of every page of an org. */
export function Shell() {
  const { org: slug = '' } = useParams({ strict: false })
  const query = useQuery(session)
  const { zone } = usePrefs()
  return (
    <ZoneContext value={zone}>
      <Loaded query={query}>
        {(known) => {
          const org = known.orgs.find((it) => it.name === slug && slugOf(known, it.id) === slug) ?? known.orgs.find((it) => it.id === slug)
          if (!org) {
            return (
              <main className="stack" style={{ padding: 24 }}>
                <h1>No such org</h1>
                <Empty>
                  {known.email} is not a member of <bdi>{slug}</bdi>. <a href="/">Go to your org</a>, or <a href="/account">see your account</a>.
                </Empty>
              </main>
            )
          }
          // Links keep the form of the address: a name, or an id.
          return <Framed key={org.id} slug={slug} id={org.id} session={known} />
        }}
      </Loaded>
    </ZoneContext>
  )
}

function Framed({ slug, id, session: known }: { slug: string; id: string; session: OrgHere['session'] }) {
  const query = useQuery(frame(id))
  const mine = known.orgs.find((it) => it.id === id)
  const value = useMemo<OrgHere>(
    () => ({ id, slug, name: mine?.name ?? slug, role: query.data?.role ?? mine?.role ?? 'read-only', session: known, frame: query.data, to: paths(slug) }),
    [id, slug, mine, known, query.data],
  )
  useEffect(() => rememberOrg(id), [id])
  return (
    <OrgContext value={value}>
      <LiveProvider org={id}>
        <Page />
      </LiveProvider>
    </OrgContext>
  )
}

function Page() {
  const [palette, setPalette] = useState(false)
  const [help, setHelp] = useState(false)
  useShortcutKeys()
  useFocusOnPage()
  useGlobalKeys(() => setPalette(true), () => setHelp(true))
  return (
    <>
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <Header onSearch={() => setPalette(true)} onHelp={() => setHelp(true)} />
      <StaleBar />
      <main id="main" tabIndex={-1} className={styles.main}>
        <Outlet />
      </main>
      <Palette open={palette} onClose={() => setPalette(false)} />
      <Help open={help} onClose={() => setHelp(false)} />
      <Toasts />
    </>
  )
}

function useGlobalKeys(search: () => void, help: () => void) {
  const go = useGo()
  const { org: slug = '' } = useParams({ strict: false })
  const to = paths(slug)
  useShortcuts([
    { keys: 'mod+k', does: 'Search and commands', run: search, always: true },
    { keys: '?', does: 'Show the keys', run: help },
    { keys: 'g f', does: 'Go to the fleet', run: () => go(to.fleet) },
    { keys: 'g a', does: 'Go to approvals', run: () => go(to.approvals) },
    { keys: 'g w', does: 'Go to runs', run: () => go(to.workflows) },
    { keys: 'g p', does: 'Go to apps', run: () => go(to.apps) },
    { keys: 'g r', does: 'Go to runners', run: () => go(to.runners) },
  ])
}

/** A new page takes the focus, so that a keyboard or screen reader begins at its content. */
function useFocusOnPage() {
  const path = useRouterState({ select: (state) => state.location.pathname })
  const before = useRef(path)
  useEffect(() => {
    if (before.current === path) return
    before.current = path
    if (!document.querySelector('dialog[open]')) document.getElementById('main')?.focus({ preventScroll: true })
  }, [path])
}
