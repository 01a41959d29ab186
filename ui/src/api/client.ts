/** The only place that fetches. The session is a cookie: no token ever reaches a script. */

export interface Query {
  [name: string]: string | number | boolean | undefined | null
}

export interface Request {
  org?: string | undefined
  query?: Query | undefined
  body?: unknown
  /** The same key for every try of one intent, so that a retry creates nothing twice. */
  idempotency?: string | undefined
  signal?: AbortSignal | undefined
}

export interface Answer<T> {
  data: T
  /** Where the next page starts, of lists that have one. */
  nextOffset?: number
  /** Up to which event the answer knows. */
  cursor?: string
  /** The workflow that the request started. */
  workflow?: string
}

/** An answer that is an error, or no answer at all (`code` is `offline`). */
export class ApiFailure extends Error {
  override name = 'ApiFailure'
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly hint?: string,
    readonly requestId?: string,
    readonly dependents: string[] = [],
  ) {
    super(message)
  }
}

/** Any thrown value as what a page shows. */
export function asFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error
  return new ApiFailure(error instanceof Error ? error.message : String(error), 0, 'page')
}

export const newKey = (): string => {
  const random = crypto.getRandomValues(new Uint8Array(16))
  return `ui-${[...random].map((it) => it.toString(16).padStart(2, '0')).join('')}`
}

/** The path of the sign-in page, with the way back. */
export const loginPath = (): string => `/login?return_to=${encodeURIComponent(location.pathname + location.search + location.hash)}`

/** `/v1/installs/{install}` with its ids, escaped. */
export const path = (parts: TemplateStringsArray, ...ids: string[]): string => parts.map((part, at) => part + (at < ids.length ? encodeURIComponent(ids[at] ?? '') : '')).join('')

function address(route: string, query: Query | undefined): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '' && value !== false) search.set(name, String(value))
  }
  const text = search.toString()
  return text ? `${route}?${text}` : route
}

export async function send<T>(method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE', route: string, request: Request = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (request.org) headers['x-nuon-org-id'] = request.org
  const init: RequestInit = { method, headers, credentials: 'same-origin', signal: request.signal ?? null }
  if (method !== 'GET') {
    headers['x-ferry-request'] = '1'
    headers['content-type'] = 'application/json'
    if (request.idempotency) headers['idempotency-key'] = request.idempotency
    init.body = JSON.stringify(request.body ?? {})
  }

  let response: Response
  try {
    response = await fetch(address(route, request.query), init)
  } catch (error) {
    if (request.signal?.aborted) throw error
    throw new ApiFailure('the server does not answer', 0, 'offline', 'Check your connection; this page shows what it knew last.')
  }
  const text = await response.text()
  let data: unknown
  try {
    data = text === '' ? undefined : JSON.parse(text)
  } catch {
    data = undefined
  }
  if (!response.ok) throw failure(response, data)
  const answer: Answer<T> = { data: data as T }
  const offset = Number(response.headers.get('x-nuon-page-offset') ?? 0)
  const limit = Number(response.headers.get('x-nuon-page-limit') ?? 0)
  if (response.headers.get('x-nuon-page-next') === 'true' && limit > 0) answer.nextOffset = offset + limit
  const cursor = response.headers.get('x-ferry-cursor')
  if (cursor) answer.cursor = cursor
  const workflow = response.headers.get('x-nuon-install-workflow-id')
  if (workflow) answer.workflow = workflow
  return answer
}

interface Body {
  error?: string
  description?: string
  code?: string
  hint?: string | null
  request_id?: string
  dependents?: string[]
}

function failure(response: Response, data: unknown): ApiFailure {
  const body: Body = typeof data === 'object' && data !== null ? data : {}
  if (response.status === 401) location.assign(loginPath())
  const message = body.description || body.error || `the server answered ${response.status}`
  return new ApiFailure(message, response.status, body.code || `http_${response.status}`, body.hint ?? undefined, body.request_id || undefined, body.dependents ?? [])
}

export const get = async <T>(route: string, request: Request = {}): Promise<T> => (await send<T>('GET', route, request)).data
export const post = async <T>(route: string, request: Request = {}): Promise<T> => (await send<T>('POST', route, request)).data
export const patch = async <T>(route: string, request: Request = {}): Promise<T> => (await send<T>('PATCH', route, request)).data
export const remove = async <T>(route: string, request: Request = {}): Promise<T> => (await send<T>('DELETE', route, request)).data
