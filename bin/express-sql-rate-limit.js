#!/usr/bin/env node
// Starts the command line. In a clone that was not built yet, builds it first; the package on npm is built.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const program = new URL('../dist/esm/operate/cli/main.js', import.meta.url)
if (!existsSync(program)) {
  process.stderr.write('Building once …\n')
  execFileSync(process.execPath, ['scripts/build.mjs'], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const { main } = await import(program)
await main(version)
