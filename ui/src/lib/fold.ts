/** Rows of a log whose steps can be folded: a header row per step, its lines below it unless it is folded. */

export interface Section {
  from: number
  to: number
}

export type Piece = { row: number; count: number } & ({ is: 'head'; section: number } | { is: 'lines'; from: number })

/** The pieces of the list, in order; lines of no section stand where they are. Lines are numbered from 1. */
export function layout(sections: Section[], total: number, folded: (section: number) => boolean): { pieces: Piece[]; rows: number } {
  const pieces: Piece[] = []
  let row = 0
  let line = 1
  const lines = (from: number, to: number) => {
    if (to < from) return
    pieces.push({ is: 'lines', row, from, count: to - from + 1 })
    row += to - from + 1
  }
  sections.forEach((section, at) => {
    if (section.from > line) lines(line, section.from - 1)
    pieces.push({ is: 'head', row, section: at, count: 1 })
    row += 1
    // The last one grows with the log.
    const to = at === sections.length - 1 ? Math.max(section.to, total) : section.to
    if (!folded(at)) lines(Math.max(line, section.from), to)
    line = Math.max(line, to + 1)
  })
  lines(line, total)
  return { pieces, rows: row }
}

function pieceAt(pieces: Piece[], row: number): Piece | undefined {
  let low = 0
  let high = pieces.length - 1
  while (low <= high) {
    const mid = (low + high) >> 1
    const piece = pieces[mid]
    if (!piece) return undefined
    if (row < piece.row) high = mid - 1
    else if (row >= piece.row + piece.count) low = mid + 1
    else return piece
  }
  return undefined
}

/** What stands in a row: a line by number, or the header of a section. */
export function at(pieces: Piece[], row: number): { line: number } | { section: number } | undefined {
  const piece = pieceAt(pieces, row)
  if (!piece) return undefined
  return piece.is === 'head' ? { section: piece.section } : { line: piece.from + row - piece.row }
}

/** The row in which a line stands; `undefined` if its section is folded. */
export function rowOf(pieces: Piece[], line: number): number | undefined {
  for (const piece of pieces) {
    if (piece.is === 'lines' && line >= piece.from && line < piece.from + piece.count) return piece.row + line - piece.from
  }
  return undefined
}

/** The section that a line belongs to. */
export function sectionOf(sections: Section[], line: number): number | undefined {
  for (let index = sections.length - 1; index >= 0; index -= 1) {
    const section = sections[index]
    if (section && line >= section.from && (line <= section.to || index === sections.length - 1)) return index
  }
  return undefined
}
