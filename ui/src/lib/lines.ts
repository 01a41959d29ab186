/** Arithmetic of a list with millions of rows: no element is higher than a browser can draw, so the scroll position is scaled. */

export const ROW = 20
/** Browsers cut elements at about 17 to 33 million pixels. */
export const MAX_HEIGHT = 8_000_000

export interface View {
  count: number
  viewport: number
}

/** Height of the element that scrolls. */
export const totalHeight = ({ count }: View): number => Math.min(count * ROW, MAX_HEIGHT)

/** The row (a fraction too) at the top of the viewport. */
export function topRow(view: View, scrollTop: number): number {
  const { count, viewport } = view
  const height = totalHeight(view)
  const real = count * ROW
  if (real <= viewport) return 0
  const range = Math.max(1, height - viewport)
  const share = Math.min(1, Math.max(0, scrollTop / range))
  return (share * (real - viewport)) / ROW
}

/** The scroll position at which `row` stands at the top. */
export function scrollFor(view: View, row: number): number {
  const { count, viewport } = view
  const real = count * ROW
  if (real <= viewport) return 0
  const share = Math.min(1, Math.max(0, (row * ROW) / (real - viewport)))
  return share * Math.max(0, totalHeight(view) - viewport)
}

/** Rows to draw, and where the first one stands, in pixels from the element's top. */
export function windowAt(view: View, scrollTop: number, extra = 8): { from: number; to: number; offset: number } {
  const top = topRow(view, scrollTop)
  const from = Math.max(0, Math.floor(top) - extra)
  const to = Math.min(view.count, Math.ceil(top + view.viewport / ROW) + extra)
  return { from, to, offset: Math.max(0, scrollTop) - (top - from) * ROW }
}

export interface Range {
  from: number
  to: number
}

/** `#L5` and `#L5-L9` (1-based, inclusive); anything else is `undefined`. */
export function parseRange(hash: string): Range | undefined {
  const found = /^#?L(\d{1,12})(?:-L?(\d{1,12}))?$/.exec(hash)
  if (!found) return undefined
  const a = Number(found[1])
  const b = found[2] === undefined ? a : Number(found[2])
  const [from, to] = a <= b ? [a, b] : [b, a]
  return from < 1 ? undefined : { from, to }
}

export const formatRange = ({ from, to }: Range): string => (from === to ? `L${from}` : `L${from}-L${to}`)

/** The pages of `size` lines that cover rows `from` to `to` (exclusive). */
export function pagesOf(from: number, to: number, size: number): number[] {
  const pages: number[] = []
  for (let page = Math.floor(from / size); page * size < to; page += 1) pages.push(page)
  return pages
}
