import { beforeEach, expect, it } from 'vitest'
import { beginsSequence, isTyping, matchKey, type Shortcut } from './keys'

const shortcuts: Shortcut[] = ['a', 'A', '?', 'g f', 'mod+k', 'Escape'].map((keys) => ({ keys, does: keys, run: () => {} }))
const press = (key: string, more: Partial<KeyboardEvent> = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, target: document.body, ...more })

beforeEach(() => {
  document.body.innerHTML = '<input id=text><input id=check type=checkbox><textarea></textarea><div contenteditable id=rich></div><button></button>'
})

it('fires where nobody types', () => {
  expect(matchKey(press('a'), shortcuts, true)?.keys).toBe('a')
  expect(matchKey(press('A'), shortcuts, true)?.keys).toBe('A')
  expect(matchKey(press('f'), shortcuts, true, 'g')?.keys).toBe('g f')
  expect(matchKey(press('x'), shortcuts, true)).toBeUndefined()
  expect(beginsSequence('g', shortcuts)).toBe(true)
})

it('never fires in fields, with modifiers, or when switched off', () => {
  const input = document.querySelector('#text')
  expect(matchKey(press('a', { target: input }), shortcuts, true)).toBeUndefined()
  expect(matchKey(press('a', { target: document.querySelector('textarea') }), shortcuts, true)).toBeUndefined()
  expect(matchKey(press('a', { ctrlKey: true }), shortcuts, true)).toBeUndefined()
  expect(matchKey(press('a', { altKey: true }), shortcuts, true)).toBeUndefined()
  expect(matchKey(press('a'), shortcuts, false)).toBeUndefined()
})

it('keeps Ctrl-K and Escape everywhere', () => {
  const input = document.querySelector('#text')
  expect(matchKey(press('k', { ctrlKey: true, target: input }), shortcuts, false)?.keys).toBe('mod+k')
  expect(matchKey(press('K', { metaKey: true }), shortcuts, false)?.keys).toBe('mod+k')
  expect(matchKey(press('Escape', { target: input }), shortcuts, false)?.keys).toBe('Escape')
})

it('tells fields from controls', () => {
  expect(isTyping(document.querySelector('#check'))).toBe(false)
  expect(isTyping(document.querySelector('#rich'))).toBe(true)
  expect(isTyping(document.querySelector('button'))).toBe(false)
})
