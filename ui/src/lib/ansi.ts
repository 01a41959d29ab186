/**
 * Log lines to spans. Only colours and styles are read (SGR); every other escape sequence is dropped, and control and bidi characters
 * are made visible, so that a line can't move, hide or reorder what stands beside it. The result is text, never HTML.
 */

export type Colour = 'black' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'white'

export interface Span {
  text: string
  colour?: Colour
  bold?: boolean
  dim?: boolean
  underline?: boolean
  inverse?: boolean
}

/** At most this much of a line is shown, and at most so many spans; the rest is marked as cut. */
export const MAX_CHARS = 20_000
export const MAX_SPANS = 2_000

const colours: Colour[] = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

// CSI, OSC and other string sequences (ended by BEL or ST), two-character escapes, and the 8-bit CSI.
// eslint-disable-next-line no-control-regex
const escape = /\u001b\[([0-?]*)[ -/]*([@-~])|\u009b([0-?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[ -/]*[0-~]?/g

// What could hide or reorder text: C0 and C1 controls, bidi marks, zero-width characters, line separators.
// eslint-disable-next-line no-control-regex
const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** Makes control and direction characters visible: `\u202e` shows as `<U+202E>`. */
export function harmless(text: string): string {
  return text.replaceAll(odd, (mark) => {
    const code = mark.charCodeAt(0)
    if (code < 0x20) return String.fromCharCode(0x2400 + code)
    if (code === 0x7f) return '\u2421'
    return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
  })
}

type Style = Omit<Span, 'text'>

function nearest(index: number): Colour | undefined {
  if (index < 16) return colours[index % 8]
  if (index >= 232) return index < 244 ? 'black' : 'white'
  const at = index - 16
  return fromRgb(Math.floor(at / 36) * 51, (Math.floor(at / 6) % 6) * 51, (at % 6) * 51)
}

function fromRgb(r: number, g: number, b: number): Colour {
  const bit = (v: number) => (v > 110 ? 1 : 0)
  return colours[bit(r) + 2 * bit(g) + 4 * bit(b)] ?? 'white'
}

function restyle(style: Style, parameters: string): Style {
  const codes = parameters.slice(0, 64).split(/[;:]/).map((it) => Number.parseInt(it, 10) || 0)
  let next = { ...style }
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0
    if (code === 0) next = {}
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 4) next.underline = true
    else if (code === 7) next.inverse = true
    else if (code === 22) {
      delete next.bold
      delete next.dim
    } else if (code === 24) delete next.underline
    else if (code === 27) delete next.inverse
    else if (code >= 30 && code <= 37) next.colour = colours[code - 30]
    else if (code >= 90 && code <= 97) next.colour = colours[code - 90]
    else if (code === 39) delete next.colour
    else if (code === 38 || code === 48) {
      let found: Colour | undefined
      if (codes[at + 1] === 5) {
        found = nearest(codes[at + 2] ?? 0)
        at += 2
      } else if (codes[at + 1] === 2) {
        found = fromRgb(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0)
        at += 4
      }
      if (code === 38 && found) next.colour = found
    }
  }
  return next
}

/** The spans of one line. What a carriage return overwrote is dropped, as on a terminal. */
export function parseLine(line: string): { spans: Span[]; cut: number } {
  const cut = Math.max(0, line.length - MAX_CHARS)
  let text = cut > 0 ? line.slice(0, MAX_CHARS) : line
  text = text.replace(/[\r\n]+$/, '')
  const back = text.lastIndexOf('\r')
  if (back >= 0) text = text.slice(back + 1)

  const spans: Span[] = []
  let style: Style = {}
  const push = (piece: string) => {
    if (piece === '') return
    const shown = harmless(piece)
    const last = spans.at(-1)
    if (last && same(last, style)) last.text += shown
    else if (spans.length < MAX_SPANS) spans.push({ ...style, text: shown })
    else if (last) last.text += shown
  }
  let from = 0
  for (const found of text.matchAll(escape)) {
    push(text.slice(from, found.index))
    from = found.index + found[0].length
    if ((found[2] ?? found[4]) === 'm') style = restyle(style, found[1] ?? found[3] ?? '')
  }
  push(text.slice(from))
  return { spans, cut }
}

function same(a: Style, b: Style): boolean {
  return a.colour === b.colour && a.bold === b.bold && a.dim === b.dim && a.underline === b.underline && a.inverse === b.inverse
}

/** The line without any style: for copying and for search. */
export const plain = (line: string): string => parseLine(line).spans.map((it) => it.text).join('')
