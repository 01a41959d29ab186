import { QueryClient } from '@tanstack/react-query'
import { expect, it, vi } from 'vitest'
import { Invalidator, touches } from './invalidate'
import type { LiveNote } from './types'

const note = (kind: string, more: Partial<LiveNote> = {}): LiveNote => ({ kind, subject_type: 'x', subject_id: 's1', ...more })

it('takes the answers that show what changed, and no others', () => {
  const step = touches(note('workflow.step', { workflow_id: 'w1', install_id: 'i1' }))
  expect(step(['o', 'workflow', 'w1'])).toBe(true)
  expect(step(['o', 'workflow', 'w2'])).toBe(false)
  expect(step(['o', 'install', 'i1', 'overview'])).toBe(true)
  expect(step(['o', 'install', 'i2', 'overview'])).toBe(false)
  expect(step(['o', 'fleet', {}])).toBe(true)
  expect(step(['o', 'members'])).toBe(false)
  expect(step(['o', 'log', 'l1', 'outline'])).toBe(false)

  const runner = touches(note('runner.presence', { runner_id: 'r1', install_id: 'i1' }))
  expect(runner(['o', 'runner', 'r1'])).toBe(true)
  expect(runner(['o', 'install', 'i1', 'inputs'])).toBe(false)
})

it('gathers events, and writes a new status at once', () => {
  vi.useFakeTimers()
  const client = new QueryClient()
  const spy = vi.spyOn(client, 'invalidateQueries')
  client.setQueryData(['o', 'workflow', 'w1'], { status: 'in-progress', steps: [{ id: 'p1', status: 'pending' }] })
  const invalidator = new Invalidator(client, 'o')
  invalidator.note(note('workflow.step', { workflow_id: 'w1', step_id: 'p1', status: 'success' }))
  invalidator.note(note('workflow.status', { workflow_id: 'w1', status: 'success' }))
  expect(client.getQueryData(['o', 'workflow', 'w1'])).toEqual({ status: 'success', steps: [{ id: 'p1', status: 'success' }] })
  expect(spy).not.toHaveBeenCalled()
  vi.advanceTimersByTime(100)
  expect(spy).toHaveBeenCalledTimes(1)
  vi.useRealTimers()
})
