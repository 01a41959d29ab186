import type { ComponentGraph, GraphNode } from '../../api/types'
import { Icon } from '../../base/Icon'
import { type Role, statusLook } from '../../lib/status'
import { plural, words } from '../../lib/format'
import { To } from '../To'
import styles from './Graph.module.css'

const WIDTH = 200
const HEIGHT = 44
const GAP_X = 64
const GAP_Y = 16
const MOST = 60

function lookOf(it: GraphNode): { role: Role; icon: Parameters<typeof Icon>[0]['name']; word: string } {
  if (it.disabled) return statusLook('disabled', 'component')
  if (!it.status) return { role: 'neutral', icon: 'circle', word: words(it.type ?? '') }
  const own = statusLook(it.status, 'component')
  if (own.role === 'ok' && it.drift === 'drifted') return statusLook('drifted')
  if (own.role === 'ok' && it.health && !['healthy', 'not-applicable'].includes(it.health)) return statusLook(it.health, 'health')
  return own
}

/** Components and what they need: links on a grid, lines between them. The server gives each its place. */
export function Graph({ graph, place }: { graph: ComponentGraph; place: (name: string) => string }) {
  let nodes = graph.nodes
  let note = ''
  if (nodes.length > MOST) {
    // Of a large graph, what is in trouble and what stands beside it.
    const bad = new Set(nodes.filter((it) => !['ok', 'neutral'].includes(lookOf(it).role)).map((it) => it.name))
    const near = new Set(bad)
    for (const edge of graph.edges) {
      if (bad.has(edge.from)) near.add(edge.to)
      if (bad.has(edge.to)) near.add(edge.from)
    }
    nodes = near.size > 0 ? nodes.filter((it) => near.has(it.name)) : nodes.slice(0, MOST)
    note = `${plural(nodes.length, 'component')} of ${graph.nodes.length}: ${near.size > 0 ? 'those in trouble and their neighbours' : 'the first'}. The list shows all.`
  }
  const lanes = [...new Set(nodes.map((it) => it.lane))].sort((a, b) => a - b)
  const ranks = [...new Set(nodes.map((it) => it.rank))].sort((a, b) => a - b)
  const at = new Map(nodes.map((it) => [it.name, { x: ranks.indexOf(it.rank) * (WIDTH + GAP_X), y: lanes.indexOf(it.lane) * (HEIGHT + GAP_Y) }]))
  const width = ranks.length * (WIDTH + GAP_X) - GAP_X
  const height = lanes.length * (HEIGHT + GAP_Y) - GAP_Y
  return (
    <>
      {note && <p className="muted">{note}</p>}
      <div className={styles.scroll} tabIndex={0} role="group" aria-label="Components and what they need">
        <div className={styles.canvas} style={{ width, height }}>
          <svg className={styles.edges} width={width} height={height} aria-hidden="true">
            {graph.edges.map((edge) => {
              const from = at.get(edge.from)
              const to = at.get(edge.to)
              if (!from || !to) return null
              const x1 = from.x + WIDTH
              const y1 = from.y + HEIGHT / 2
              const y2 = to.y + HEIGHT / 2
              return <path key={`${edge.from} ${edge.to}`} d={`M${x1} ${y1}C${x1 + GAP_X / 2} ${y1} ${to.x - GAP_X / 2} ${y2} ${to.x} ${y2}`} />
            })}
          </svg>
          {nodes.map((it) => {
            const look = lookOf(it)
            const spot = at.get(it.name)
            const needs = graph.edges.filter((edge) => edge.to === it.name).map((edge) => edge.from)
            return (
              <To key={it.name} to={place(it.name)} className={styles.node} style={{ left: spot?.x, top: spot?.y, width: WIDTH, height: HEIGHT }} title={`${it.name}: ${look.word}`}>
                <span className={styles[look.role]}>
                  <Icon name={look.icon} size={14} />
                </span>
                <span className={styles.texts}>
                  <bdi className={styles.name}>{it.name}</bdi>
                  <span className={styles.word}>{look.word}</span>
                </span>
                {needs.length > 0 && <span className="visually-hidden">needs {needs.join(', ')}</span>}
              </To>
            )
          })}
        </div>
      </div>
    </>
  )
}
