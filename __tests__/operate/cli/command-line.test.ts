import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MYSQL_SCHEMA, SQLITE_SCHEMA } from '../../../lib/stores/schema.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { runCli, runJson } from './run-cli.js'

// Each test starts the program several times.
jest.setTimeout(120_000)

const COMMANDS = ['install', 'schema', 'status', 'top', 'reset', 'block', 'sweep', 'usage', 'doctor']
const PASSWORD = 'p@ss/w:rd#1%'
/** The password, and pieces of its spellings in an address, as written and as encoded. */
const LEAKS = /p@ss|p%40ss|w:rd|w%3Ard|rd#1|rd%231/i

describe('help', () => {
  it.each(COMMANDS)('of %s teaches by examples', async (command) => {
    const { code, stdout, stderr } = await runCli([command, '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`Usage: express-sql-rate-limit ${command}`)
    expect(stdout).toMatch(/\nExamples:\n {2}\$ /)
    expect(stdout).toContain('--url <address>')
    expect(stdout).toContain('--json')
    expect(stdout.split('\n').filter((line) => line.length > 130)).toEqual([])
  })

  it('of the program names every command, the variable and what it ends with', async () => {
    const { code, stdout } = await runCli(['--help'])
    expect(code).toBe(0)
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'))
    expect(stdout).toMatch(/DATABASE_URL/)
    expect(stdout).toMatch(/Ends with 0: fine, 1: a finding/)
  })

  it('comes to who says nothing, as a mistake', async () => {
    const { code, stderr } = await runCli([])
    expect(code).toBe(2)
    expect(stderr).toContain('Usage: express-sql-rate-limit')
  })

  it('has a version, the package’s', async () => {
    const { stdout } = await runCli(['--version'])
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('schema', () => {
  it.each([
    ['mysql', MYSQL_SCHEMA],
    ['mariadb', MYSQL_SCHEMA],
    ['sqlite', SQLITE_SCHEMA],
  ])('for %s is that of the package, without a database', async (dialect, files) => {
    const text = await runCli(['schema', '--dialect', dialect])
    expect(text).toMatchObject({ code: 0, stderr: '' })
    expect(text.stdout.trim()).toBe(files.map(({ sql }) => sql.trim()).join('\n\n'))
    expect(await runJson(['schema', '--dialect', dialect])).toEqual({
      ...{ code: 0, json: { command: 'schema', dialect, files } },
    })
  })

  it.each([
    ['the variable', 'sqlite', [], 'sqlite:limits.sqlite'],
    ['the variable', 'mysql', [], 'mariadb://user@nowhere.invalid/shop'],
    ['--url before the variable', 'sqlite', ['--url', 'limits.sqlite'], 'mysql://user@nowhere.invalid/shop'],
    ['--dialect before both', 'mysql', ['--url', 'limits.sqlite', '--dialect', 'mysql'], 'limits.sqlite'],
    ['nobody', 'mysql', [], undefined],
    ['nobody in a variable that is empty', 'mysql', [], ''],
  ])('is for the database that %s says: %s', async (_, dialect, args, databaseUrl) => {
    expect(await runJson(['schema', ...args], { databaseUrl })).toMatchObject({ code: 0, json: { dialect } })
  })
})

describe('a wrong command line', () => {
  const somewhere = ['--url', 'limits.sqlite']
  it.each<[string[], RegExp]>([
    [['what'], /unknown command 'what'/],
    [['statu', 'a', ...somewhere], /Did you mean status\?/],
    [['status', ...somewhere], /missing required argument 'KEY'/],
    [['status', '', ...somewhere], /Expected KEY to be a text that is not empty/],
    [['status', 'a', 'b', ...somewhere], /too many arguments/],
    [['status', 'a', '--wrong', ...somewhere], /unknown option '--wrong'/],
    [['status', '["a"', '--parts', ...somewhere], /JSON array of texts/],
    [['status', '[1]', '--parts', ...somewhere], /JSON array of texts/],
    [['status', 'a', '--hashed', ...somewhere], /RATE_LIMIT_HASH_KEYS/],
    [['block', 'a', ...somewhere], /missing required argument 'SECONDS'/],
    [['block', 'a', 'soon', ...somewhere], /Expected a number from 0.001 to 31536000/],
    [['block', 'a', '0', ...somewhere], /Expected a number from 0.001 to 31536000/],
    [['top', '--by', 'size', ...somewhere], /Expected one of used, rate, recent, blocked/],
    [['top', '--count', '1e3', ...somewhere], /Expected a whole number from 1 to 1000/],
    [['usage', 'a', '--from', 'monday', ...somewhere], /Expected a moment such as/],
    [['usage', 'a', '--bucket', 'decade', ...somewhere], /Expected one of minute/],
    [['usage', 'a', '--time-zone', 'Mars/Base', ...somewhere], /an IANA time zone/],
    [['usage', 'a', '--from', '2026-02-01', '--to', '2026-01-01', ...somewhere], /later than --from/],
    [['schema', '--dialect', 'oracle'], /Allowed choices are mysql, mariadb, sqlite/],
    [['top'], /--url or the variable DATABASE_URL/],
    [['top', '--url', 'postgres://a:hunter2@b/c'], /Expected --url to be mysql:/],
    [['top', '--url', 'a:hunter2@b/c'], /Expected --url to be mysql:/],
    [['install', '--url', 'a:hunter2@tcp(b:3306)/c'], /Expected --url to be mysql:/],
    [['top', '--url', 'mysql//a:hunter2@b/c'], /Expected --url to be mysql:/],
    [['top', '--url', 'mysql://a:hunter2@b'], /name of a database/],
    [['top', '--url', 'mysql://a:hunter2%zz@b/c'], /%25/],
    [['top', '--url', 'mysql://a:hunter2@b:port/c'], /%40/],
    [['top', '--url', ':memory:'], /memory of a process/],
    [['top', 'mysql://a:hunter2@b/c', ...somewhere], /too many arguments/],
    [['mysql://a:hunter2@b/c'], /unknown command/],
    [['top', '--uri=mysql://a:hunter2@b/c'], /unknown option/],
  ])('%j is told, and ends with 2', async (args, message) => {
    const folder = mkdtempSync(join(tmpdir(), 'cli-'))
    const file = join(folder, 'limits.sqlite')
    writeFileSync(file, '')
    const located = args.map((arg) => (arg === 'limits.sqlite' ? file : arg))
    const text = await runCli(located)
    expect(text).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
    expect(text.stderr).not.toContain('hunter2')
    const { code, json } = await runJson(located)
    expect({ code, error: json.error }).toEqual({
      ...{ code: 2, error: { code: 'ERR_USAGE', message: expect.stringMatching(message), advice: null } },
    })
    expect(JSON.stringify(json)).not.toContain('hunter2')
    rmSync(folder, { recursive: true })
  })
})

describe('a database that is not there', () => {
  it.each<[string, string, RegExp]>([
    [
      'a port where nobody listens',
      `mysql://app:${encodeURIComponent(PASSWORD)}@127.0.0.1:1/app`,
      /Is the server running/,
    ],
    ['a host that does not exist', 'mysql://app@no-such-host.invalid/app', /host/],
    ['a file that does not exist', '/nowhere/limits.sqlite', /install/],
  ])(
    '%s ends every command with 3, and says what to do',
    async (_, databaseUrl, advice) => {
      for (const args of [['doctor'], ['status', 'a'], ['sweep']]) {
        const { code, stderr, stdout } = await runCli(args, { databaseUrl })
        expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
        expect(stderr).toMatch(/^express-sql-rate-limit: /)
        expect(stderr).toMatch(advice)
        expect(stderr).not.toMatch(LEAKS)
      }
      const { code, json } = await runJson(['doctor'], { databaseUrl })
      expect(code).toBe(3)
      expect(json.error).toEqual({
        ...{
          code: 'ERR_STORE_CONNECTION',
          message: expect.any(String),
          advice: expect.stringMatching(advice),
        },
      })
    },
    60_000,
  )

  it('a server that never answers is given up within seconds', async () => {
    const silent = createServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const { code, stderr } = await runCli(['top'], { databaseUrl: `mysql://app@127.0.0.1:${port}/app` })
    silent.close()
    expect(code).toBe(3)
    expect(stderr).toMatch(/did not answer/)
  })

  it('a file that is no database is told', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cli-'))
    const file = join(folder, 'text.sqlite')
    writeFileSync(file, 'no database, but a text that is long enough to be taken for one. '.repeat(20))
    const { code, stderr } = await runCli(['top', '--url', file])
    rmSync(folder, { recursive: true })
    expect(code).toBe(3)
    expect(stderr).toMatch(/no SQLite database/)
  })
})

describeServers('a password', ({ kind }) => {
  let database: TestDatabase
  const user = `cli${Date.now() % 1e9}`
  beforeAll(async () => {
    database = await createTestDatabase(kind)
    await database.query(`CREATE USER ${user}@'%' IDENTIFIED BY '${PASSWORD}'`)
    await database.query(`GRANT ALL ON ${database.name}.* TO ${user}@'%'`)
  })
  afterAll(async () => {
    await database.query(`DROP USER ${user}@'%'`)
    await database.drop()
  })
  const address = (password: string): string => {
    const uri = new URL(database.uri)
    uri.username = user
    uri.password = ''
    return uri.href.replace(`//${user}`, `//${user}:${encodeURIComponent(password)}`)
  }

  it('with every special character works, and is not in what anything prints', async () => {
    const databaseUrl = address(PASSWORD)
    for (const args of [
      ['install'],
      ['doctor'],
      ['top'],
      ['status', 'a'],
      ['block', 'a', '1', '--name', 'x'],
    ]) {
      for (const form of [[], ['--json']]) {
        const { code, stdout, stderr } = await runCli([...args, ...form], { databaseUrl })
        expect(code).not.toBe(3)
        expect(stdout + stderr).not.toMatch(LEAKS)
      }
    }
  })

  it.each(['DATABASE_URL', '--url'])(
    'that is wrong is told by %s, and not shown',
    async (way) => {
      const wrong = address(`${PASSWORD}no`)
      const [args, options] = way === '--url' ? [['--url', wrong], {}] : [[], { databaseUrl: wrong }]
      const { code, stdout, stderr } = await runCli(['top', ...args], options)
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
      expect(stderr).toMatch(/ER_ACCESS_DENIED_ERROR/)
      expect(stderr).toMatch(/The user or the password is wrong/)
      expect(stderr).not.toMatch(LEAKS)
      const { json } = await runJson(['doctor', ...args], options)
      expect(json.error).toMatchObject({
        code: 'ERR_STORE_CONFIG',
        advice: expect.stringMatching(/password is wrong/),
      })
      expect(JSON.stringify(json)).not.toMatch(LEAKS)
    },
    60_000,
  )

  it('that was put into the query of the address is not shown', async () => {
    const uri = new URL(database.uri)
    const { code, stdout, stderr } = await runCli(['top'], {
      databaseUrl: `mysql://nobody@${uri.host}${uri.pathname}?password=${encodeURIComponent(PASSWORD)}`,
    })
    expect(code).toBe(3)
    expect(stdout + stderr).not.toMatch(LEAKS)
  })

  it('a database that does not exist is told', async () => {
    const { code, stderr } = await runCli(['top'], { databaseUrl: `${address(PASSWORD)}_not` })
    expect(code).toBe(3)
    expect(stderr).toMatch(/GRANT|CREATE DATABASE/)
  })
})
