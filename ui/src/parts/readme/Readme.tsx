import { createElement, type ReactNode } from 'react'
import type { ReadmeBlock, ReadmeText } from '../../api/types'
import styles from './Readme.module.css'

/** A README from the server's blocks. There is no markup to run: every block is made here, every text is text. */
export function ReadmeBlocks({ blocks }: { blocks: ReadmeBlock[] }) {
  return (
    <div className={styles.readme} dir="auto">
      {blocks.map((it, at) => (
        <Block key={at} block={it} />
      ))}
    </div>
  )
}

function Block({ block }: { block: ReadmeBlock }): ReactNode {
  switch (block.type) {
    case 'heading':
      // The page has its own h1 and h2.
      return createElement(`h${Math.min(6, Math.max(3, (block.level ?? 1) + 2))}`, { className: styles.heading }, <Texts text={block.text} />)
    case 'code':
      return (
        <pre className={styles.code} tabIndex={0}>
          <code>{block.code}</code>
        </pre>
      )
    case 'list':
      return createElement(
        block.ordered ? 'ol' : 'ul',
        { className: styles.list, ...(block.ordered && block.start !== undefined ? { start: block.start } : {}) },
        block.items?.map((item, at) => (
          <li key={at}>
            {item.checked !== undefined && <input type="checkbox" checked={item.checked} readOnly tabIndex={-1} aria-label={item.checked ? 'done' : 'open'} />}
            <Nested blocks={item.blocks} />
          </li>
        )),
      )
    case 'quote':
      return (
        <blockquote className={styles.quote}>
          {block.items?.map((item, at) => <Nested key={at} blocks={item.blocks} />)}
        </blockquote>
      )
    case 'table':
      return (
        <div className={styles.scroll} tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.header?.map((cell, at) => (
                  <th key={at} scope="col">
                    <Texts text={cell.text} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows?.map((row, at) => (
                <tr key={at}>
                  {row.cells.map((cell, index) => (
                    <td key={index}>
                      <Texts text={cell.text} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )
    case 'rule':
      return <hr className={styles.rule} />
    default:
      return (
        <p>
          <Texts text={block.text} />
        </p>
      )
  }
}

function Nested({ blocks }: { blocks: ReadmeBlock[] }) {
  return blocks.map((it, at) => <Block key={at} block={it} />)
}

const safe = (href: string) => /^(https?:|mailto:)/i.test(href)

function Texts({ text }: { text: ReadmeText[] | undefined }) {
  return text?.map((it, at) => {
    let shown: ReactNode = it.text
    if (it.code) shown = <code>{shown}</code>
    if (it.strong) shown = <strong>{shown}</strong>
    if (it.emphasis) shown = <em>{shown}</em>
    if (it.strike) shown = <s>{shown}</s>
    if (it.href && safe(it.href)) {
      shown = (
        <a href={it.href} target="_blank" rel="noreferrer noopener">
          {shown}
        </a>
      )
    }
    return <span key={at}>{shown}</span>
  })
}
