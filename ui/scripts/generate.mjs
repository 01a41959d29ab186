// Writes src/api/schema.d.ts from the Control API's document: `npm run generate`. With `--check` it only compares.
import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'

const source = new URL('../../api/openapi/control.json', import.meta.url)
const target = new URL('../src/api/schema.d.ts', import.meta.url)
const head = '// Generated from api/openapi/control.json by `npm run generate`. Do not edit.\n'
const document = JSON.parse(await readFile(source, 'utf8'))
// Names of operations repeat, and nothing here uses them.
for (const path of Object.values(document.paths)) for (const operation of Object.values(path)) delete operation.operationId
// A schema that is named but not listed (it is recursive) is any object.
for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)) document.components.schemas[name] ??= { type: 'object' }
const text = head + astToString(await openapiTS(document))
if (process.argv.includes('--check')) {
  if ((await readFile(target, 'utf8')) !== text) {
    console.error('src/api/schema.d.ts is out of date; run `npm run generate`')
    process.exit(1)
  }
} else {
  await writeFile(target, text)
}
