// Weighs what a first visit loads, and every later chunk (gzip). Fails above the limits; a built `dist` is needed.
import { readFileSync, readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const dist = new URL('../dist/', import.meta.url)
const limits = { first: 250, aim: 180, later: 60 }
const kib = (bytes) => bytes / 1024
const weigh = (path) => kib(gzipSync(readFileSync(new URL(path, dist)), { level: 9 }).length)

const html = readFileSync(new URL('index.html', dist), 'utf8')
const first = new Set([...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((it) => it[1]))
// Modules that the entry imports at once come with it.
const queue = [...first]
for (const path of queue) {
  if (!path.endsWith('.js')) continue
  const text = readFileSync(new URL(path, dist), 'utf8')
  for (const [, name] of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) {
    const next = `assets/${name}`
    if (!first.has(next)) {
      first.add(next)
      queue.push(next)
    }
  }
}

let total = weigh('index.html')
for (const path of first) total += weigh(path)
const later = readdirSync(new URL('assets/', dist))
  .map((name) => `assets/${name}`)
  .filter((path) => !first.has(path))
  .map((path) => ({ path, size: weigh(path) }))
  .sort((a, b) => b.size - a.size)

console.log(`first load  ${total.toFixed(1)} KiB gzip (limit ${limits.first}, aim ${limits.aim})`)
for (const { path, size } of later.slice(0, 8)) console.log(`  later     ${size.toFixed(1).padStart(5)}  ${path}`)
console.log(`  later     ${later.reduce((sum, it) => sum + it.size, 0).toFixed(1)} in all, ${later.length} files`)

const heavy = later.filter((it) => it.size > limits.later)
for (const { path, size } of heavy) console.error(`${path} weighs ${size.toFixed(1)} KiB; the limit is ${limits.later}`)
if (total > limits.first) console.error(`the first load weighs ${total.toFixed(1)} KiB; the limit is ${limits.first}`)
process.exit(total > limits.first || heavy.length > 0 ? 1 : 0)
