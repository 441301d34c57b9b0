import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as packageExports from 'express-sql-rate-limit'

interface Snippet {
  /** Page and line, for people. */
  readonly place: string
  readonly page: string
  /** Lines of the page before its first one. */
  readonly before: number
  /** The file that it says it is. */
  readonly file: string | undefined
  readonly code: string
}

const pages = [
  'README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
const snippets: Snippet[] = pages.flatMap((page) => {
  const text = readFileSync(page, 'utf8')
  return Array.from(
    text.matchAll(/^( *)```ts(?: (\S+))?\n([\s\S]*?)^ *```$/gm),
    ({ index, 1: indent = '', 2: file, 3: code = '' }) => {
      const before = text.slice(0, index).split('\n').length
      const unindented = code.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      return { place: `${page}:${before + 1}`, page, before, file, code: unindented }
    },
  )
})

/** Examples may show their lines farther to the right. */
const flat = (text: string): string => text.replaceAll(/^ +/gm, '')

const examples = readdirSync('examples')
  .filter((name) => name.endsWith('.ts'))
  .map((name) => flat(readFileSync(join('examples', name), 'utf8')))

/** What is a part of an example is run and type-checked there; its own test says how. */
const isRun = ({ code }: Snippet): boolean => examples.some((source) => source.includes(flat(code)))

test.each(snippets.filter(({ file }) => file !== undefined))('$place is $file as it is', ({ file, code }) => {
  expect(code).toBe(readFileSync(file as string, 'utf8'))
})

test('every other snippet is a part of an example, or type-checks beside the package', () => {
  const checked = snippets.filter((snippet) => !isRun(snippet))
  expect(checked.length).toBeGreaterThan(10)

  const folder = mkdtempSync(join(tmpdir(), 'snippets-'))
  try {
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
    cpSync('__tests__/docs/snippets/globals.d.ts', join(folder, 'globals.d.ts'))
    const ours = Object.keys(packageExports).map(
      (name) => `declare const ${name}: typeof import('express-sql-rate-limit').${name}\n`,
    )
    writeFileSync(join(folder, 'exports.d.ts'), ours.join(''))
    for (const { page, before, code } of checked) {
      const name = `${page.replace('/', '-')}.${before}.ts`
      // The same lines as on the page, so that the compiler's errors lead there; and each a module.
      writeFileSync(join(folder, name), `${'\n'.repeat(before)}${code}export {}\n`)
    }
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const compilerOptions = {
      types: ['node'],
      paths: { 'express-sql-rate-limit': [resolve('lib/index.ts')] },
    }
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: resolve('tsconfig.json'), compilerOptions, include: ['*.ts'], exclude: [] }),
    )
    expect(errorsOf(folder)).toBe('')
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 180_000)

/** What the compiler has to say. */
function errorsOf(folder: string): string {
  try {
    execFileSync('node_modules/.bin/tsc', ['-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout || error)
  }
}
