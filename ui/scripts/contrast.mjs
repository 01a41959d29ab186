// Computes the contrast of the colours in src/tokens.css, in both themes, and fails below the design's figures.
import { readFileSync } from 'node:fs'

const css = readFileSync(new URL('../src/tokens.css', import.meta.url), 'utf8')
const block = (selector) => {
  const at = css.indexOf(`${selector} {`)
  if (at < 0) throw new Error(`tokens.css has no ${selector}`)
  const body = css.slice(at, css.indexOf('}', at))
  return Object.fromEntries([...body.matchAll(/--([a-z-]+):\s*(#[0-9a-f]{6})/g)].map((it) => [it[1], it[2]]))
}
const themes = { dark: block(":root[data-theme='dark']"), light: block(":root[data-theme='light']") }

const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
const luminance = (hex) => {
  const [r, g, b] = [1, 3, 5].map((at) => channel(Number.parseInt(hex.slice(at, at + 2), 16) / 255))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
const contrast = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}

const grounds = ['bg', 'surface', 'sunken', 'hover']
const roles = ['neutral', 'info', 'ask', 'ok', 'warn', 'bad', 'odd']
let failed = 0
const need = (theme, front, back, least) => {
  const colours = themes[theme]
  if (!colours[front] || !colours[back]) throw new Error(`${theme}: ${front} or ${back} is missing`)
  const found = contrast(colours[front], colours[back])
  if (found < least) {
    failed += 1
    console.error(`${theme}: ${front} on ${back} is ${found.toFixed(2)}, needs ${least}`)
  }
  return found
}

for (const theme of ['dark', 'light']) {
  const least = theme === 'dark' ? 6.4 : 5.3
  let worst = 99
  for (const ground of grounds) {
    for (const front of ['text', 'muted', ...roles]) worst = Math.min(worst, need(theme, front, ground, least))
    need(theme, 'control', ground, 3.4)
  }
  for (const role of roles) worst = Math.min(worst, need(theme, role, `${role}-tint`, least))
  for (const solid of ['info', 'bad']) need(theme, 'bg', solid, 6.4)
  console.log(`${theme}: worst contrast of text ${worst.toFixed(2)} (needs ${least})`)
}
process.exit(failed ? 1 : 0)
