import { expect, it } from 'vitest'
import { bytes, clip, count, plural, shellQuote, shortDigest, shortId } from './format'

it('writes counts and sizes', () => {
  expect(count(999121)).toBe('999,121')
  expect(plural(1, 'install')).toBe('1 install')
  expect(plural(0, 'entry', 'entries')).toBe('0 entries')
  expect([1, 4096, 12_000, 3_000_000].map(bytes)).toEqual(['1 byte', '4,096 bytes', '12 KiB', '2.9 MiB'])
})

it('shortens ids and digests', () => {
  expect(shortId('wflho74z7yiryfnfi7li0m7b36')).toBe('0m7b36')
  expect(shortDigest('sha256:9f3c1a77')).toBe('9f3c1a')
  expect(clip('abcdef', 3)).toBe('abc…')
})

it('quotes for a shell', () => {
  expect(shellQuote('acme')).toBe('acme')
  expect(shellQuote("Ada's corner; rm -rf /")).toBe(`'Ada'\\''s corner; rm -rf /'`)
  expect(shellQuote('')).toBe("''")
})
