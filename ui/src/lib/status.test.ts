import { describe, expect, it } from 'vitest'
import text from '../../../api/openapi/control.json?raw'
import { isOpen, statusLook } from './status'

interface Schema {
  type?: string
  enum?: string[]
  properties?: Record<string, Schema>
  items?: Schema
  oneOf?: Schema[]
  allOf?: Schema[]
  $ref?: string
}

const document = JSON.parse(text) as {
  components: { schemas: Record<string, Schema> }
}

/** Every word of every enum that a field named like a status refers to. */
function statusWords(): Set<string> {
  const schemas = document.components.schemas
  const words = new Set<string>()
  const collect = (schema: Schema | undefined) => {
    if (!schema) return
    schema.enum?.forEach((word) => words.add(word))
    if (schema.$ref) collect(schemas[schema.$ref.split('/').at(-1) ?? ''])
    for (const it of [...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) collect(it)
  }
  const walk = (schema: Schema) => {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      if (/status|verdict/.test(name)) collect(field)
    }
    for (const it of [...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) walk(it)
  }
  Object.values(schemas).forEach(walk)
  return words
}

describe('statuses', () => {
  it('knows every word of the API', () => {
    const words = [...statusWords()]
    expect(words).toContain('not-attempted')
    // A word of the API is lower case.
    const unknown = words.filter((word) => word === word.toLowerCase() && word !== 'unknown' && !['none', 'never-looked', 'look-failed'].includes(word) && statusLook(word).icon === 'question')
    expect(unknown).toEqual([])
  })

  it('knows the words of steps, workflows, parts and runners, which the document does not list as enums', () => {
    const words = [
      'pending', 'in-progress', 'approval-awaiting', 'approved', 'success', 'auto-skipped', 'user-skipped', 'drifted', 'no-drift', 'error',
      'approval-denied', 'denied-skipped', 'approval-expired', 'cancelled', 'not-attempted', 'discarded', 'warning', 'active', 'inactive',
      'offline', 'disabled', 'draining', 'open', 'revoked',
    ]
    for (const word of words) expect(statusLook(word).icon, word).not.toBe('question')
  })

  it('gives the same word another look where the thing differs', () => {
    expect(statusLook('active', 'build').word).toBe('done')
    expect(statusLook('active', 'component').word).toBe('live')
    expect(statusLook('active', 'runner')).toEqual({ role: 'ok', icon: 'link', word: 'online' })
  })

  it('shows a new word as itself, and nothing as not known', () => {
    expect(statusLook('quantum-state').word).toBe('quantum-state')
    expect(statusLook(undefined).word).toBe('not known')
    expect(statusLook('unknown').role).toBe('odd')
  })

  it('tells what can still change', () => {
    expect(isOpen('approval-awaiting')).toBe(true)
    expect(isOpen('success')).toBe(false)
    expect(isOpen('unknown')).toBe(false)
  })
})
