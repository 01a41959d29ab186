import type { InfiniteData, UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ApiFailure, type Answer, asFailure } from '../api/client'
import { Button } from '../base/Button'
import { Failure, type FailureInfo } from '../base/Failure'
import { Skeleton } from '../base/Skeleton'

export function failureInfo(error: unknown): FailureInfo {
  const failed = asFailure(error)
  const info: FailureInfo = { message: failed.message, hint: failed.hint, requestId: failed.requestId }
  if (failed.code !== 'page') info.code = failed.code
  return info
}

interface State {
  isPending: boolean
  error: unknown
  refetch: () => unknown
}

interface Props<T> {
  query: UseQueryResult<T>
  children: (data: T) => ReactNode
  skeleton?: ReactNode
  /** Shown in place of the error when there is no such thing. */
  missing?: ReactNode
}

/** Data when there is some (old data stays while new is fetched), its error, or the shape of what loads. */
export function Loaded<T>({ query, children, skeleton, missing }: Props<T>) {
  return (
    <Frame query={query} skeleton={skeleton} missing={missing} has={query.data !== undefined}>
      {query.data !== undefined && children(query.data)}
    </Frame>
  )
}

function Frame({ query, has, skeleton, missing, children }: { query: State; has: boolean; skeleton?: ReactNode; missing?: ReactNode; children: ReactNode }) {
  if (!has && query.error instanceof ApiFailure && query.error.status === 404 && missing !== undefined) return missing
  if (has || query.error) {
    return (
      <>
        {Boolean(query.error) && <Failure error={failureInfo(query.error)} onRetry={() => query.refetch()} />}
        {has && children}
      </>
    )
  }
  return skeleton ?? <Skeleton />
}

interface ListProps<D> {
  query: UseInfiniteQueryResult<InfiniteData<Answer<D[]>>>
  children: (rows: D[]) => ReactNode
  empty: ReactNode
  skeleton?: ReactNode
}

/** The rows of a list that pages, with a button for more. */
export function LoadedList<D>({ query, children, empty, skeleton }: ListProps<D>) {
  const rows = query.data?.pages.flatMap((it) => it.data) ?? []
  return (
    <Frame query={query} skeleton={skeleton} has={query.data !== undefined}>
      {rows.length === 0 ? empty : children(rows)}
      <More query={query} />
    </Frame>
  )
}

export function More({ query, label = 'Show more' }: { query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }; label?: string }) {
  if (!query.hasNextPage) return null
  return (
    <p>
      <Button busy={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
        {label}
      </Button>
    </p>
  )
}
