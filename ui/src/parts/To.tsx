import { Link, useNavigate, useRouterState, useSearch } from '@tanstack/react-router'
import type { AnchorHTMLAttributes } from 'react'

interface Props extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> {
  to: string
  exact?: boolean
  activeClass?: string | undefined
}

export function split(to: string): { to: string; search: Record<string, string>; hash: string } {
  const url = new URL(to, 'http://page')
  return { to: url.pathname, search: Object.fromEntries(url.searchParams), hash: url.hash.slice(1) }
}

/** A link to a page of the dashboard: path, query and hash in one text. */
export function To({ to, exact = false, activeClass, className, ...rest }: Props) {
  const place = split(to)
  return (
    <Link
      {...rest}
      to={place.to}
      search={place.search}
      hash={place.hash}
      className={className ?? ''}
      activeOptions={{ exact, includeSearch: false }}
      activeProps={activeClass ? { className: [className, activeClass].filter(Boolean).join(' '), 'aria-current': 'page' as const } : {}}
    />
  )
}

/** Goes to a page. */
export function useGo() {
  const navigate = useNavigate()
  return (to: string, replace = false) => void navigate({ ...split(to), replace })
}

/** Filters and selections live in the URL. An empty value leaves it. */
export function useParamsState(): [Record<string, string | undefined>, (change: Record<string, string | undefined>, replace?: boolean) => void] {
  const search: Record<string, string | undefined> = useSearch({ strict: false })
  const navigate = useNavigate()
  const path = useRouterState({ select: (state) => state.location.pathname })
  const hash = useRouterState({ select: (state) => state.location.hash })
  return [
    search,
    (change, replace = true) => {
      const next = Object.fromEntries(Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined && value !== ''))
      void navigate({ to: path, search: next, replace, hash, resetScroll: false })
    },
  ]
}
