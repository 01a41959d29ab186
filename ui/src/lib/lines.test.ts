import { describe, expect, it } from 'vitest'
import { formatRange, MAX_HEIGHT, pagesOf, parseRange, ROW, scrollFor, topRow, totalHeight, windowAt } from './lines'

describe('a short log', () => {
  const view = { count: 100, viewport: 400 }
  it('is not scaled', () => {
    expect(totalHeight(view)).toBe(2000)
    expect(topRow(view, 200)).toBe(10)
    expect(windowAt(view, 200, 0)).toEqual({ from: 10, to: 30, offset: 200 })
  })
  it('does not scroll where it fits', () => {
    expect(topRow({ count: 5, viewport: 400 }, 100)).toBe(0)
    expect(scrollFor({ count: 5, viewport: 400 }, 3)).toBe(0)
  })
})

describe('a log of ten million lines', () => {
  const view = { count: 10_000_000, viewport: 800 }
  it('is no higher than a browser draws, and reaches both ends', () => {
    expect(totalHeight(view)).toBe(MAX_HEIGHT)
    expect(topRow(view, 0)).toBe(0)
    const end = windowAt(view, MAX_HEIGHT - 800, 0)
    expect(end.to).toBe(10_000_000)
    // The last row ends at the bottom of the viewport.
    expect(end.offset + (end.to - end.from) * ROW).toBeCloseTo(MAX_HEIGHT, 0)
  })
  it('finds every row that a link names', () => {
    for (const row of [0, 1, 4711, 999_121, 9_999_959]) expect(topRow(view, scrollFor(view, row))).toBeCloseTo(row, 3)
  })
  it('draws as many rows as are seen, wherever', () => {
    for (const scroll of [0, 17, 123_456, 4_000_000, MAX_HEIGHT]) {
      const { from, to } = windowAt(view, scroll)
      expect(to - from).toBeLessThanOrEqual(800 / ROW + 18)
    }
  })
})

it('reads and writes links to lines', () => {
  expect(parseRange('#L5-L9')).toEqual({ from: 5, to: 9 })
  expect(parseRange('#L9-L5')).toEqual({ from: 5, to: 9 })
  expect(parseRange('#L7')).toEqual({ from: 7, to: 7 })
  for (const bad of ['', '#L0', '#5', '#L1-', '#L1;x', '#L99999999999999']) expect(parseRange(bad)).toBeUndefined()
  expect(formatRange({ from: 5, to: 9 })).toBe('L5-L9')
  expect(formatRange({ from: 5, to: 5 })).toBe('L5')
})

it('covers rows with pages', () => {
  expect(pagesOf(190, 410, 200)).toEqual([0, 1, 2])
  expect(pagesOf(200, 400, 200)).toEqual([1])
})
