import { TextArea } from '../base/Field'

/** `KEY=value` lines to an object; what has no `=` is reported. */
export function parsePairs(text: string): { pairs: Record<string, string>; bad: string | undefined } {
  const pairs: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const at = line.indexOf('=')
    if (at < 1) return { pairs, bad: line.trim() }
    pairs[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return { pairs, bad: undefined }
}

export function PairsField({ label, hint, value, onChange }: { label: string; hint?: string; value: string; onChange: (value: string) => void }) {
  const { bad } = parsePairs(value)
  return <TextArea label={label} hint={hint ?? 'One KEY=value a line.'} error={bad === undefined ? undefined : `“${bad}” has no “=”.`} rows={3} value={value} onChange={(event) => onChange(event.target.value)} spellCheck={false} autoComplete="off" />
}
