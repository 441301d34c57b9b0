import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT } from '../../lib/operate/cli/exit-code.js'
import { createProgram } from '../../lib/operate/cli/program.js'

const DOCTOR = 'lib/operate/cli/doctor'

/** A program that knows its commands and runs none of them. */
function program() {
  const created = createProgram('0.0.0', {
    onDatabase: async () => {},
    databaseKind: () => null,
    answer() {},
    progress: null,
  })
  let help = ''
  for (const command of [created, ...created.commands]) {
    command.exitOverride().configureOutput({
      writeErr() {},
      writeOut: (text) => {
        help += text
      },
    })
  }
  return { created, help: () => help }
}

/** The arguments of every line that calls the program, as a shell would give them. */
function callsIn(text: string): string[][] {
  const calls = Array.from(
    text.matchAll(/^.*?\bexpress-sql-rate-limit (?=[a-z-])(.*)$/gm),
    ([line, rest = '']) => ({
      line,
      rest,
    }),
  )
  return calls
    .filter(({ line }) => /^ *(\$ |npx |\d[\d* ]+)/.test(line))
    .map(({ rest }) =>
      Array.from(
        rest
          .replace(/`.*$/, '')
          .replace(/ +#.*$| [|>]{1,2} .*$/, '')
          .matchAll(/'([^']*)'|(\S+)/g),
        ([, quoted, plain]) => quoted ?? plain ?? '',
      ),
    )
}

const helpOf = (command: string): string => {
  const { created, help } = program()
  expect(() => created.parse([command, '--help'], { from: 'user' })).toThrow()
  return help()
}

const COMMANDS = program().created.commands.map((command) => command.name())

const SOURCES: [string, string][] = [
  ...['docs/command-line.md', 'docs/shared-hosting.md'].map((file): [string, string] => [
    file,
    readFileSync(file, 'utf8'),
  ]),
  ...COMMANDS.map((command): [string, string] => [`${command} --help`, helpOf(command)]),
]

test.each(SOURCES)('every command line in %s is one', async (_, text) => {
  const calls = callsIn(text)
  expect(calls.length).toBeGreaterThan(1)
  for (const args of calls) {
    const outcome = await program()
      .created.parseAsync(args, { from: 'user' })
      .then(
        () => 0,
        // Help ends this way too.
        (error) => error.exitCode,
      )
    expect({ args, outcome }).toEqual({ args, outcome: 0 })
  }
})

const PAGE = readFileSync('docs/command-line.md', 'utf8')

test('the page has every command, every check and every exit code', () => {
  for (const command of COMMANDS) expect(PAGE).toMatch(new RegExp(`^## ${command}\\b`, 'm'))
  const sources = readdirSync(DOCTOR).map((name) => readFileSync(join(DOCTOR, name), 'utf8'))
  const checks = new Set(
    sources.flatMap((source) => Array.from(source.matchAll(/\bok\(\s*'(\w+)'/g), ([, check]) => check)),
  )
  expect(checks.size).toBeGreaterThan(20)
  for (const check of checks) expect(PAGE).toContain(`\`${check}\``)
  for (const code of Object.values(EXIT)) expect(PAGE).toMatch(new RegExp(`^\\| ${code} `, 'm'))
})
