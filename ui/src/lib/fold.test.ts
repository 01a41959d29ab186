import { expect, it } from 'vitest'
import { at, layout, rowOf, sectionOf } from './fold'

const sections = [
  { from: 2, to: 4 },
  { from: 5, to: 9 },
]

it('lays out headers and lines', () => {
  const { pieces, rows } = layout(sections, 12, () => false)
  expect(rows).toBe(14)
  expect([0, 1, 2, 4, 5, 6, 13].map((row) => at(pieces, row))).toEqual([{ line: 1 }, { section: 0 }, { line: 2 }, { line: 4 }, { section: 1 }, { line: 5 }, { line: 12 }])
  expect(rowOf(pieces, 12)).toBe(13)
  expect(at(pieces, 14)).toBeUndefined()
})

it('folds', () => {
  const { pieces, rows } = layout(sections, 9, (section) => section === 0)
  expect(rows).toBe(1 + 1 + 1 + 5)
  expect(rowOf(pieces, 3)).toBeUndefined()
  expect(at(pieces, 2)).toEqual({ section: 1 })
  expect(rowOf(pieces, 5)).toBe(3)
})

it('has no headers where there are no sections', () => {
  expect(layout([], 3, () => true)).toEqual({ rows: 3, pieces: [{ is: 'lines', row: 0, from: 1, count: 3 }] })
  expect(layout([], 0, () => true).rows).toBe(0)
})

it('knows the section of a line', () => {
  expect([1, 2, 4, 5, 99].map((line) => sectionOf(sections, line))).toEqual([undefined, 0, 0, 1, 1])
})
