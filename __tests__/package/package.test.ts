import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const NODES = ['20', '22', '24', '26']
const EXPRESSES = ['4', '5']
const NPM_INSTALL = [
  'install',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-package-lock',
  '--prefer-offline',
]

let folder: string
let tarball: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'package-'))
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder])
  tarball = join(folder, JSON.parse(stdout)[0].filename)
}, 120_000)

afterAll(() => rmSync(folder, { recursive: true }))

/** An empty folder with nothing but these packages in it. */
async function install(name: string, packages: readonly string[]): Promise<string> {
  const target = join(folder, name)
  mkdirSync(target)
  writeFileSync(join(target, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', [...NPM_INSTALL, ...packages], { cwd: target })
  return target
}

/** Rejects with what the program has said. */
async function succeed(command: string, parameters: readonly string[], cwd?: string): Promise<string> {
  try {
    return (await run(command, parameters, { cwd })).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${parameters.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error })
  }
}

test('holds the program, its schema and its documents, and nothing else', async () => {
  const { stdout } = await run('tar', ['-tzf', tarball])
  const files = stdout
    .trim()
    .split('\n')
    .map((line) => line.replace('package/', ''))
  const others = files.filter((file) => !/^(bin|dist|docs|sql)\//.test(file))
  expect(others.toSorted()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'])
  expect(files).toEqual(expect.arrayContaining(['sql/mysql/001-rate-limit.sql', 'dist/cjs/index.d.ts']))
})

test('publint has nothing to say', async () => {
  await succeed('node_modules/.bin/publint', ['--strict', tarball])
}, 60_000)

test('its types are right for every kind of module', async () => {
  await succeed('node_modules/.bin/attw', [tarball])
}, 120_000)

describe.each(EXPRESSES)('installed with Express %s in an empty folder', (express) => {
  let consumer: string

  beforeAll(async () => {
    const packages = [`express@${express}`, `@types/express@${express}`, '@types/node@20', 'typescript@5.9']
    consumer = await install(`express${express}`, [tarball, ...packages])
    for (const extension of ['mts', 'cts', 'ts'])
      copyFileSync('__tests__/package/application.ts', join(consumer, `application.${extension}`))
  }, 300_000)

  /** Nothing is left out of the checks, our declarations and those that they import least of all. */
  function writeConfig(name: string, compilerOptions: object, files: readonly string[]): string {
    const file = join(consumer, `${name}.json`)
    const options = {
      target: 'es2022',
      types: ['node'],
      strict: true,
      skipLibCheck: false,
      ...compilerOptions,
    }
    writeFileSync(file, JSON.stringify({ compilerOptions: options, files }))
    return file
  }

  const compilers: [string, () => string][] = [
    ['5.9', () => join(consumer, 'node_modules/.bin/tsc')],
    ['7', () => resolve('node_modules/.bin/tsc')],
  ]

  test.each(compilers)(
    'type-checks as ESM and CommonJS with TypeScript %s and module node16',
    async (_version, tsc) => {
      const modules = { module: 'node16', moduleResolution: 'node16' }
      await succeed(tsc(), ['-p', writeConfig('node16', modules, ['application.mts', 'application.cts'])])
    },
    120_000,
  )

  test.each(compilers)(
    'type-checks with TypeScript %s and moduleResolution bundler',
    async (_version, tsc) => {
      const modules = { module: 'esnext', moduleResolution: 'bundler', noEmit: true }
      await succeed(tsc(), ['-p', writeConfig('bundler', modules, ['application.ts'])])
    },
    120_000,
  )
})

describe('installed and run', () => {
  let nodes: string

  beforeAll(async () => {
    // The package `node` fetches these by a script of its own, which is not run here.
    const system = process.platform === 'win32' ? 'win' : process.platform
    nodes = await install(
      'nodes',
      NODES.map((major) => `node${major}@npm:node-${system}-${process.arch}@${major}`),
    )
  }, 600_000)

  const combinations = NODES.flatMap((node) =>
    EXPRESSES.flatMap((express) => ['mjs', 'cjs'].map((extension) => ({ node, express, extension }))),
  )
  const nodeOf = (major: string): string => join(nodes, `node_modules/node${major}/bin/node`)

  test.each(combinations)(
    'decides under Node.js $node with Express $express, as $extension',
    async ({ node, express, extension }) => {
      const consumer = join(folder, `express${express}`)
      const version = await succeed(nodeOf(node), ['--version'])
      expect(version).toMatch(new RegExp(`^v${node}\\.`))
      const said = await succeed(nodeOf(node), [join(consumer, `application.${extension}`)], consumer)
      expect(JSON.parse(said)).toEqual({
        answers: [
          [200, '"global";r=1;t=60'],
          [200, '"global";r=0;t=60'],
          [429, '"global";r=0;t=60'],
        ],
        // Node.js 20 has no SQLite, and no driver was installed.
        sqlite: node === '20' ? 'ERR_STORE_CONFIG' : 'allowed',
        mysql: 'ERR_STORE_CONFIG',
      })
    },
    60_000,
  )

  test.each(NODES)(
    'its command line runs under Node.js %s',
    async (node) => {
      const consumer = join(folder, 'express5')
      const program = join(consumer, 'node_modules/.bin/express-sql-rate-limit')
      const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
      expect(await succeed(nodeOf(node), [program, '--version'])).toBe(`${version}\n`)
      expect(await succeed(nodeOf(node), [program, 'schema', '--dialect', 'sqlite'])).toContain(
        'CREATE TABLE',
      )
    },
    60_000,
  )
})
