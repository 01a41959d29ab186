/** Times for people: relative where they stand, absolute on demand, in UTC or the browser's zone. */

export type Zone = 'utc' | 'local'

const steps: [number, string][] = [
  [60, 's'],
  [60, 'min'],
  [24, 'h'],
  [365, 'd'],
]

/** `3 min`, `2 h`, `12 d`; a year and more as `1.5 y`. */
export function span(ms: number): string {
  let value = Math.max(0, ms) / 1000
  for (const [size, unit] of steps) {
    if (value < size || unit === 'd') {
      if (unit === 'd' && value >= 365) return `${(value / 365).toFixed(1)} y`
      return `${Math.floor(value)} ${unit}`
    }
    value /= size
  }
  return ''
}

/** `3 min ago`, `in 2 h`, `now`. */
export function relative(at: number, now: number): string {
  const away = now - at
  if (Math.abs(away) < 1000) return 'now'
  return away > 0 ? `${span(away)} ago` : `in ${span(-away)}`
}

/** How long something took: `0.4 s`, `71 s`, `4 min 10 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < 0 || !Number.isFinite(ms)) return ''
  if (ms < 950) return `${(ms / 1000).toFixed(1)} s`
  const s = Math.round(ms / 1000)
  if (s < 120) return `${s} s`
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`
  const min = Math.round(s / 60)
  if (min < 1440) return min % 60 ? `${Math.floor(min / 60)} h ${min % 60} min` : `${min / 60} h`
  const h = Math.round(s / 3600)
  return h % 24 ? `${Math.floor(h / 24)} d ${h % 24} h` : `${h / 24} d`
}

const two = (n: number) => String(n).padStart(2, '0')

/** `2026-03-05 12:04:31 UTC`, or with the local zone's offset. */
export function absolute(at: number, zone: Zone): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return ''
  if (zone === 'utc') return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
  const offset = -date.getTimezoneOffset()
  const sign = offset < 0 ? '-' : '+'
  const away = `${sign}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at, zone)} ${away}`
}

/** `12:04:31` */
export function clock(at: number, zone: Zone): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return ''
  if (zone === 'utc') return date.toISOString().slice(11, 19)
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** The milliseconds of an API timestamp; `undefined` if there is none. */
export function parseTime(text: string | null | undefined): number | undefined {
  if (!text) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
