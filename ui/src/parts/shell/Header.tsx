import { useParams, useRouterState } from '@tanstack/react-router'
import { Button } from '../../base/Button'
import { Icon } from '../../base/Icon'
import { Menu, type MenuItem } from '../../base/Menu'
import { statusLook } from '../../lib/status'
import { slugOf } from '../../pages/Home'
import { useLiveState } from '../live'
import { useOrg } from '../org'
import { setPrefs, usePrefs } from '../prefs'
import { To, useGo } from '../To'
import styles from './Header.module.css'

export function Header({ onSearch, onHelp }: { onSearch: () => void; onHelp: () => void }) {
  const org = useOrg()
  const go = useGo()
  const waiting = org.frame?.approvals ?? 0
  const entries = [
    { to: org.to.fleet, name: 'Fleet', exact: true },
    { to: org.to.workflows, name: 'Runs' },
    { to: org.to.approvals, name: 'Approvals', count: waiting },
    { to: org.to.apps, name: 'Apps' },
    { to: org.to.runners, name: 'Runners' },
    { to: org.to.audit, name: 'Audit' },
    { to: org.to.settings(), name: 'Settings' },
  ]
  return (
    <header className={styles.header}>
      <To to={org.to.fleet} className={styles.brand} exact>
        Ferry
      </To>
      <Menu className={styles.small} kind="quiet" small name="Pages" bare label={<Icon name="menu" />} items={entries.map((it) => ({ key: it.name, label: it.count ? `${it.name} (${it.count})` : it.name, onSelect: () => go(it.to) }))} />
      <OrgMenu />
      <nav aria-label="Pages" className={styles.nav}>
        {entries.map((it) => (
          <To key={it.name} to={it.to} exact={it.exact ?? false} className={styles.link ?? ''} activeClass={styles.here}>
            {it.name}
            {it.count ? (
              <span className={styles.count}>
                {it.count}
                <span className="visually-hidden"> waiting</span>
              </span>
            ) : null}
          </To>
        ))}
      </nav>
      <div className={styles.right}>
        {waiting > 0 && (
          <To to={org.to.approvals} className={styles.approvals}>
            <Icon name="diamond" size={12} /> {waiting}
            <span className="visually-hidden"> approvals wait</span>
          </To>
        )}
        <button type="button" className={styles.search} onClick={onSearch} aria-label="Search, Ctrl K">
          <Icon name="search" size={14} />
          <span>Search</span>
          <kbd>Ctrl-K</kbd>
        </button>
        <BuildRunner />
        <LiveMark />
        <UserMenu onHelp={onHelp} />
      </div>
    </header>
  )
}

/** Switching the org keeps the kind of page. */
function OrgMenu() {
  const org = useOrg()
  const go = useGo()
  const path = useRouterState({ select: (state) => state.location.pathname })
  const { org: slug = '' } = useParams({ strict: false })
  const rest = path.slice(`/o/${encodeURIComponent(slug)}`.length)
  const kept = /^\/(approvals|workflows|apps|runners|audit|settings\/\w+)$/.test(rest) ? rest : ''
  const items: MenuItem[] = org.session.orgs.map((it) => ({
    key: it.id,
    label: <bdi>{it.name}</bdi>,
    note: it.role,
    checked: it.id === org.id,
    onSelect: () => go(`/o/${encodeURIComponent(slugOf(org.session, it.id))}${kept}`),
  }))
  return (
    <Menu
      kind="quiet"
      small
      name={`Org ${org.name}`}
      className={styles.org}
      label={
        <span className={styles.orgName}>
          <bdi>{org.name}</bdi>
        </span>
      }
      items={items}
    />
  )
}

function BuildRunner() {
  const org = useOrg()
  const runner = org.frame?.build_runner
  if (!runner) return null
  const look = statusLook(runner.status, 'runner')
  const running = runner.builds_running ?? 0
  const open = runner.builds_open ?? 0
  const text = running > 0 ? `builds ${running}` : open > 0 ? `${open} wait` : 'builds'
  return (
    <To to={org.to.runner(runner.id)} className={[styles.state, styles[look.role]].join(' ')} title={`Build runner: ${runner.text || look.word}`}>
      <Icon name={look.icon} size={12} />
      <span className={styles.word}>{text}</span>
      <span className="visually-hidden">, build runner {look.word}</span>
    </To>
  )
}

function LiveMark() {
  const live = useLiveState()
  const [role, icon, word] = live.is === 'live' ? (['ok', 'dot', 'live'] as const) : live.is === 'stale' ? (['warn', 'offline', 'not live'] as const) : live.is === 'paused' ? (['neutral', 'dash', 'paused'] as const) : (['neutral', 'half', 'connecting'] as const)
  return (
    <span className={[styles.state, styles[role]].join(' ')} title={live.is === 'live' ? 'Changes appear as they happen' : 'What is shown may be old'}>
      <Icon name={icon} size={10} />
      <span className={styles.word}>{word}</span>
    </span>
  )
}

function UserMenu({ onHelp }: { onHelp: () => void }) {
  const org = useOrg()
  const prefs = usePrefs()
  const items: MenuItem[] = [
    ...(['system', 'dark', 'light'] as const).map((theme, at) => ({
      key: theme,
      ...(at === 0 ? { group: `${org.session.email} (${org.role})` } : {}),
      label: `${theme[0]?.toUpperCase()}${theme.slice(1)} theme`,
      checked: prefs.theme === theme,
      onSelect: () => setPrefs({ theme }),
    })),
    { key: 'local', group: 'Times', label: 'Local time', checked: prefs.zone === 'local', onSelect: () => setPrefs({ zone: 'local' }) },
    { key: 'utc', label: 'UTC', checked: prefs.zone === 'utc', onSelect: () => setPrefs({ zone: 'utc' }) },
    { key: 'keys', group: 'Keys', label: 'Show the keys', note: '?', onSelect: onHelp },
    { key: 'single', label: prefs.shortcuts ? 'Switch single keys off' : 'Switch single keys on', onSelect: () => setPrefs({ shortcuts: !prefs.shortcuts }) },
    { key: 'account', group: 'Account', label: 'Sessions and account', href: '/account' },
    {
      key: 'out',
      label: 'Sign out',
      onSelect: () => {
        const form = document.getElementById('sign-out')
        if (form instanceof HTMLFormElement) form.submit()
      },
    },
  ]
  const name = org.session.email.split('@')[0] ?? ''
  return (
    <>
      <form id="sign-out" method="post" action="/auth/logout" hidden />
      <Menu kind="quiet" small name={`You, ${org.session.email}`} label={<span className={styles.user}>{name}</span>} items={items} />
    </>
  )
}

export function KeysButton({ onClick }: { onClick: () => void }) {
  return (
    <Button kind="quiet" small onClick={onClick}>
      <Icon name="keyboard" /> Keys
    </Button>
  )
}
