// Writes docs/api.md from the doc comments of lib/: `npm run generate:api`, before a release and whenever they changed.
//
// TypeDoc needs a TypeScript that is older than the one here, and npm cannot install both side by side, as the one is a peer
// of the other. So it is fetched for the occasion, in versions that are named here, and is no dependency.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const TOOLS = ['typedoc@0.28.20', 'typedoc-plugin-markdown@4.14.1', 'typescript@5.9.3']
const INTRODUCTION = `# API

Every export, from its doc comment, written by \`npm run generate:api\`. Options at a glance are in [options](options.md).
`

const folder = mkdtempSync(join(tmpdir(), 'api-'))
try {
  const options = {
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: [resolve('lib/index.ts')],
    tsconfig: resolve('tsconfig.esm.json'),
    // The compiler of this repository has checked it.
    skipErrorChecking: true,
    out: join(folder, 'out'),
    readme: 'none',
    outputFileStrategy: 'modules',
    hidePageTitle: true,
    hideGenerator: true,
    disableSources: true,
    excludePrivate: true,
    excludeExternals: true,
    groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases'],
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    classPropertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    tableColumnSettings: { hideInherited: true, hideModifiers: true, hideOverrides: true },
  }
  const file = join(folder, 'typedoc.json')
  writeFileSync(file, JSON.stringify(options))
  const tools = TOOLS.map((tool) => `--package=${tool}`)
  execFileSync('npm', ['exec', '--yes', ...tools, '--', 'typedoc', '--options', file], { stdio: 'inherit' })
  const text = readFileSync(join(folder, 'out', 'README.md'), 'utf8')
  writeFileSync('docs/api.md', `${INTRODUCTION}\n${text}`)
} finally {
  rmSync(folder, { recursive: true })
}
