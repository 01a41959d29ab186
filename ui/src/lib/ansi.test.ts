import { expect, it } from 'vitest'
import { harmless, MAX_CHARS, MAX_SPANS, parseLine, plain } from './ansi'

const e = '\u001b['

it('reads colours and styles', () => {
  expect(parseLine(`a ${e}31mred${e}0m ${e}1;92mok${e}22;39m b`).spans).toEqual([
    { text: 'a ' },
    { text: 'red', colour: 'red' },
    { text: ' ' },
    { text: 'ok', bold: true, colour: 'green' },
    { text: ' b' },
  ])
})

it('maps 256 colours and true colour to sixteen roles', () => {
  expect(parseLine(`${e}38;5;196mx`).spans[0]?.colour).toBe('red')
  expect(parseLine(`${e}38;2;20;220;20mx`).spans[0]?.colour).toBe('green')
  expect(parseLine(`${e}48;5;196;1mx`).spans[0]).toEqual({ text: 'x', bold: true })
})

it('drops every other sequence', () => {
  expect(plain(`a${e}2Jb${e}10;20Hc\u001b]0;title\u0007d\u001b]8;;http://x\u001b\\e\u001bcf\u009b31mg`)).toBe('abcdefg')
  expect(plain('a\u001b]0;never ended')).toBe('a')
  expect(plain('a\u001b')).toBe('a')
})

it('keeps what follows a carriage return', () => {
  expect(plain('10%\r50%\r100%')).toBe('100%')
  expect(plain('done\r\n')).toBe('done')
})

it('makes control and direction marks visible', () => {
  expect(harmless('a\u202eb\u0000c\u007f')).toBe('a<U+202E>b␀c␡')
  expect(harmless('tab\there, ümläut, עברית, 漢字')).toBe('tab\there, ümläut, עברית, 漢字')
})

it('never makes markup', () => {
  expect(plain('<img src=x onerror=alert(1)>')).toBe('<img src=x onerror=alert(1)>')
})

it('bounds what a line may cost', () => {
  const bomb = Array.from({ length: 200_000 }, (_, at) => `${e}${31 + (at % 7)}mx`).join('')
  const begin = performance.now()
  const { spans, cut } = parseLine(bomb)
  expect(performance.now() - begin).toBeLessThan(500)
  expect(spans.length).toBeLessThanOrEqual(MAX_SPANS)
  expect(cut).toBe(bomb.length - MAX_CHARS)
  expect(parseLine('x'.repeat(10_000_000)).spans[0]?.text.length).toBe(MAX_CHARS)
  expect(parseLine(`${e}${'1;'.repeat(100_000)}mx`).cut).toBeGreaterThan(0)
})
