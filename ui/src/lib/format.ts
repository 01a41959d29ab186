/** Small texts: counts, sizes, ids, plurals. */

const numbers = new Intl.NumberFormat('en-US')

export const count = (n: number): string => numbers.format(n)

/** `1 install`, `2 installs`. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`
}

/** `4,096 bytes`, `1.5 MiB`. */
export function bytes(n: number): string {
  if (n < 10_000) return plural(n, 'byte')
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  let value = n / 1024
  let at = 0
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024
    at += 1
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`
}

/** The last 6 characters of an id. */
export const shortId = (id: string): string => (id.length > 9 ? id.slice(-6) : id)

/** The first 6 digits of a digest, without its algorithm. */
export const shortDigest = (digest: string): string => digest.replace(/^sha256:/, '').slice(0, 6)

/** `approval_option` as `approval option`. */
export const words = (name: string): string => name.replaceAll(/[_-]+/g, ' ')

/** Quotes an argument for a POSIX shell, only where it needs quotes. */
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A text of at most `most` characters; the cut is marked. */
export function clip(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`
}

/** A value of the API as one text: text as it is, else as JSON. */
export function valueText(value: unknown, indent = 0): string {
  if (value === null || value === undefined) return 'null'
  return typeof value === 'string' ? value : (JSON.stringify(value, null, indent) ?? String(value))
}

/** Key and value of `labels`, in the order of keys. */
export const pairs = (labels: Record<string, string> | undefined): [string, string][] =>
  Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
