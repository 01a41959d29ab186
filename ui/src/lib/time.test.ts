import { expect, it } from 'vitest'
import { absolute, clock, duration, parseTime, relative, span } from './time'

const s = 1000
const min = 60 * s
const h = 60 * min

it('names spans by their largest unit', () => {
  expect([0, 59 * s, min, 59 * min, h, 25 * h, 400 * 24 * h].map(span)).toEqual(['0 s', '59 s', '1 min', '59 min', '1 h', '1 d', '1.1 y'])
})

it('looks back and ahead', () => {
  expect(relative(0, 3 * min)).toBe('3 min ago')
  expect(relative(2 * h, 0)).toBe('in 2 h')
  expect(relative(5, 0)).toBe('now')
})

it('tells how long things took', () => {
  expect([400, 71 * s, 250 * s, 7500 * s, 26 * h].map(duration)).toEqual(['0.4 s', '71 s', '4 min 10 s', '2 h 5 min', '1 d 2 h'])
  expect(duration(Number.NaN)).toBe('')
})

it('shows absolute times in UTC', () => {
  const at = Date.parse('2026-03-05T12:04:31.250Z')
  expect(absolute(at, 'utc')).toBe('2026-03-05 12:04:31 UTC')
  expect(clock(at, 'utc')).toBe('12:04:31')
  expect(absolute(at, 'local')).toMatch(/^2026-03-0\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$/)
})

it('reads what the API sends', () => {
  expect(parseTime('2026-03-05T12:04:31Z')).toBe(Date.parse('2026-03-05T12:04:31Z'))
  expect(parseTime(null)).toBeUndefined()
  expect(parseTime('soon')).toBeUndefined()
})
