import { createConnection } from 'mysql2/promise'
import { MysqlStore } from '../../../lib/index.js'
import { checkClock } from '../../../lib/operate/cli/doctor/check-clock.js'
import type { Finding } from '../../../lib/operate/cli/doctor/finding.js'
import { Reader } from '../../../lib/operate/cli/reader.js'
import { MYSQL_SCHEMA } from '../../../lib/stores/schema.js'
import { describeServers } from '../../servers/describe-servers.js'
import type { PrivateServer } from '../../servers/server.js'
import { startServer } from '../../servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { runCli, runJson } from './run-cli.js'

// Each test starts the program several times.
jest.setTimeout(120_000)

/** What is made wrong, and what the doctor must say of it. */
interface Damage {
  readonly title: string
  /** Run by root. `USER` is the application's account. */
  readonly sql: string
  readonly check: string
  readonly level: Finding['level']
  readonly found: RegExp
  readonly advice: RegExp
  /** What mends it, where the finding has no statements that do. */
  readonly mend?: string
}

const DAMAGES: readonly Damage[] = [
  {
    title: 'an index that is missing',
    sql: 'ALTER TABLE rate_keys DROP KEY ix_rate_keys_expires_at',
    ...{ check: 'schema', level: 'problem', found: /Key ix_rate_keys_expires_at of rate_keys is missing/ },
    advice: /Run these statements/,
  },
  {
    title: 'a column of another type',
    sql: 'ALTER TABLE rate_events MODIFY COLUMN ts INT NOT NULL',
    ...{ check: 'schema', level: 'problem', found: /Column rate_events.ts is int, not bigint/ },
    advice: /Run these statements/,
  },
  {
    title: 'a table that is missing',
    sql: 'DROP TABLE rate_events',
    ...{ check: 'schema', level: 'problem', found: /Table rate_events is missing/ },
    advice: /express-sql-rate-limit install/,
  },
  {
    title: 'no table of usage',
    sql: 'DROP TABLE rate_usage',
    ...{ check: 'usage', level: 'note', found: /no table rate_usage/ },
    advice: /keepUsageSeconds/,
  },
  {
    title: 'privileges that are missing',
    sql: 'REVOKE UPDATE, DELETE ON rate_keys FROM USER',
    ...{ check: 'privileges', level: 'problem', found: /lacks UPDATE, DELETE on rate_keys\.$/ },
    advice: /by a user who may GRANT/,
  },
  {
    title: 'no right at all to a table',
    sql: 'REVOKE SELECT, INSERT, UPDATE, DELETE ON rate_events FROM USER',
    ...{
      check: 'privileges',
      level: 'problem',
      found: /lacks SELECT, INSERT, UPDATE, DELETE on rate_events\.$/,
    },
    advice: /by a user who may GRANT/,
  },
  {
    title: 'no strict mode',
    sql: `SET GLOBAL sql_mode = ''`,
    ...{ check: 'sql_mode', level: 'warning', found: /no strict mode/ },
    advice: /switch it on/,
  },
  {
    title: 'an unusual sql_mode',
    sql: `SET GLOBAL sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES'`,
    ...{ check: 'sql_mode', level: 'note', found: /Unusual modes: ANSI_QUOTES, NO_BACKSLASH_ESCAPES/ },
    advice: /Nothing to do/,
    mend: `SET GLOBAL sql_mode = 'STRICT_TRANS_TABLES'`,
  },
  ...['SERIALIZABLE', 'READ UNCOMMITTED'].map(
    (level): Damage => ({
      title: `sessions at ${level}`,
      sql: `SET GLOBAL TRANSACTION ISOLATION LEVEL ${level}`,
      ...{ check: 'isolation', level: 'warning', found: new RegExp(`begin at ${level.replace(' ', '-')}`) },
      advice: /set the default back/,
    }),
  ),
  {
    title: 'a binary log by statement',
    sql: `SET GLOBAL binlog_format = 'STATEMENT'`,
    ...{ check: 'binlog', level: 'warning', found: /binlog_format = STATEMENT/ },
    advice: /Set the format/,
  },
  {
    title: 'a server that takes no writes',
    sql: 'SET GLOBAL read_only = 1',
    ...{ check: 'writes', level: 'problem', found: /refuse writes \(read_only\)/ },
    advice: /address of the primary/,
  },
  {
    title: 'commits that are not flushed',
    sql: 'SET GLOBAL innodb_flush_log_at_trx_commit = 2',
    ...{ check: 'durability', level: 'note', found: /innodb_flush_log_at_trx_commit = 2/ },
    advice: /hits of the last second/,
  },
  {
    title: 'a clock that stands still',
    sql: `SET GLOBAL init_connect = 'SET timestamp = 1700000000'`,
    ...{ check: 'clock', level: 'problem', found: /stands still: .*init_connect, which is: SET timestamp/ },
    advice: /take that out/,
  },
  {
    title: 'keys that were written in the future',
    sql: `INSERT INTO rate_keys (rkey, total, last_ts, expires_at)
VALUES ('x:future', 1, (UNIX_TIMESTAMP() + 900) * 1000000, (UNIX_TIMESTAMP() + 1800) * 1000000)`,
    ...{
      check: 'clock_steps',
      level: 'warning',
      found: /1 key were written up to (14|15) min.* in the future/,
    },
    advice: /reset KEY/,
    mend: 'DELETE FROM rate_keys',
  },
  {
    title: 'idle connections that are closed at once',
    sql: 'SET GLOBAL wait_timeout = 5',
    ...{ check: 'wait_timeout', level: 'note', found: /idle for 5 s/ },
    advice: /make it longer/,
  },
  {
    title: 'tables of a newer version',
    sql: 'UPDATE rate_limit_schema SET version = 999',
    ...{ check: 'schema', level: 'note', found: /version 999/ },
    advice: /Update the package/,
    mend: `UPDATE rate_limit_schema SET version = ${MYSQL_SCHEMA.length}`,
  },
]

describeServers('the doctor', ({ kind }) => {
  let server: PrivateServer
  let database: TestDatabase
  let databaseUrl: string
  const account = `'doc'@'%'`
  const doctor = (...args: string[]) => runJson(['doctor', ...args], { databaseUrl })
  const findingOf = (json: { findings: Finding[] }, name: string): Finding =>
    json.findings.find(({ check }) => check === name) as Finding

  beforeAll(async () => {
    server = await startServer(kind, { flags: ['--log-bin', '--server-id=1'] })
    database = await createTestDatabase(server)
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    await store.install()
    await store.close()
    await database.query(`CREATE USER ${account} IDENTIFIED BY 'hunter2'`)
    // As docs/security.md has it: on the tables, and nothing else.
    for (const table of [
      'rate_keys',
      'rate_events',
      'rate_limit_schema',
      'rate_usage',
      'rate_usage_limits',
    ]) {
      await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${table} TO ${account}`)
    }
    const url = new URL(database.uri)
    url.username = 'doc'
    url.password = 'hunter2'
    databaseUrl = url.href
  }, 200_000)
  afterAll(async () => {
    await database.close()
    await server.stop()
  })

  it('finds nothing wrong with a server as it comes, and leaves no row', async () => {
    const { code, json } = await doctor()
    expect(json.findings.filter(({ level }: Finding) => level !== 'ok')).toEqual([])
    expect({ code, isHealthy: json.isHealthy, command: json.command }).toEqual({
      ...{ code: 0, isHealthy: true, command: 'doctor' },
    })
    expect(json.server).toMatch(kind === 'mysql' ? /^MySQL \d/ : /^MariaDB 1/)
    const checks = json.findings.map(({ check }: Finding) => check)
    expect(new Set(checks).size).toBe(checks.length)
    expect(checks).toEqual([
      ...['version', 'writes', 'isolation', 'sql_mode', 'binlog', 'durability', 'clock', 'time_zone'],
      ...[
        'user_limit',
        'connections',
        'wait_timeout',
        'encryption',
        'cluster',
        'privileges',
        'schema',
        'usage',
      ],
      ...['round_trip', 'size', 'sweep', 'clock_steps', 'decision'],
    ])
    expect(await database.query('SELECT * FROM rate_keys')).toEqual([])
    const text = await runCli(['doctor'], { databaseUrl })
    expect(text.stdout).toMatch(/\nok {7}version {8}M.*[\s\S]*\n\nNothing is wrong\.\n$/)
  })

  it.each(DAMAGES)('finds $title, and what to do helps', async (damage) => {
    await database.query(damage.sql.replace('USER', account))
    const { code, json } = await doctor()
    const finding = findingOf(json, damage.check)
    expect(finding).toEqual({
      ...{ check: damage.check, level: damage.level, statements: expect.any(Array) },
      ...{ found: expect.stringMatching(damage.found), advice: expect.stringMatching(damage.advice) },
    })
    expect(code).toBe(damage.level === 'note' ? 0 : 1)
    // It says the same to people, with the statements as they are.
    const { stdout } = await runCli(['doctor', '--quiet', '--no-write'], { databaseUrl })
    for (const line of finding.statements.flatMap((statement) => statement.split('\n'))) {
      expect(stdout).toContain(`  ${line}\n`)
    }
    expect(stdout).toMatch(
      new RegExp(`^${damage.level === 'note' ? 'note' : damage.level.toUpperCase()} `, 'm'),
    )

    const mend = damage.mend === undefined ? finding.statements : [damage.mend]
    expect(mend).not.toEqual([])
    for (const statement of mend) await database.query(statement)
    const after = await doctor()
    expect(after.json.findings.filter(({ level }: Finding) => level !== 'ok')).toEqual([])
    expect(after.code).toBe(0)
  })

  it('works over the one connection that a user may have, and says what that means', async () => {
    await database.query(`ALTER USER ${account} WITH MAX_USER_CONNECTIONS 1`)
    const { json } = await doctor()
    expect(findingOf(json, 'user_limit')).toMatchObject({
      ...{ level: 'warning', found: expect.stringContaining('1 connection ') },
      advice: expect.stringContaining('createPool({ uri, connectionLimit: 1 })'),
    })
    expect(findingOf(json, 'decision').level).toBe('ok')
    await database.query(`ALTER USER ${account} WITH MAX_USER_CONNECTIONS 6`)
    const few = findingOf((await doctor()).json, 'user_limit')
    expect(few).toMatchObject({ level: 'note', found: expect.stringContaining('enough for 3 processes') })
    await database.query(`ALTER USER ${account} WITH MAX_USER_CONNECTIONS 0`)
  })

  it('finds that connections run out', async () => {
    await database.query('SET GLOBAL max_connections = 20')
    const held = await Promise.all(Array.from({ length: 15 }, () => createConnection(database.uri)))
    const finding = findingOf((await doctor()).json, 'connections')
    await Promise.all(held.map((connection) => connection.end()))
    await database.query('SET GLOBAL max_connections = 400')
    expect(finding).toMatchObject({
      ...{ level: 'warning', found: expect.stringMatching(/^1\d of 20 connections are open/) },
      ...{ advice: expect.stringMatching(/pools smaller/), statements: ['SET GLOBAL max_connections = 40;'] },
    })
  })

  it('finds what nobody sweeps, until somebody does', async () => {
    await database.query(`INSERT INTO rate_keys (rkey, expires_at)
SELECT CONCAT('old:', a.n, b.n, c.n, d.n), 1
FROM (${digits}) AS a, (${digits}) AS b, (${digits}) AS c, (${digits}) AS d`)
    const finding = findingOf((await doctor()).json, 'sweep')
    expect(finding).toMatchObject({
      ...{ level: 'warning', found: expect.stringMatching(/^10,000 keys can be swept\./) },
      advice: expect.stringMatching(/express-sql-rate-limit sweep/),
    })
    const swept = await runCli(['sweep'], { databaseUrl })
    expect(swept).toMatchObject({ code: 0, stdout: 'Removed 10,000 keys and 0 events.\n' })
    expect(findingOf((await doctor()).json, 'sweep')).toMatchObject({
      ...{ level: 'ok', found: expect.stringMatching(/^0 keys can be swept\. It was swept [\d.]+ s ago\.$/) },
    })
  })

  it('does not count what it is told to ignore, and writes nothing if it must not', async () => {
    await database.query(`SET GLOBAL sql_mode = ''`)
    const { code, json } = await doctor('--ignore', 'sql_mode,binlog', '--no-write')
    expect({ code, isHealthy: json.isHealthy }).toEqual({ code: 0, isHealthy: true })
    expect(findingOf(json, 'sql_mode').level).toBe('warning')
    expect(findingOf(json, 'decision')).toBeUndefined()
    const quiet = await runCli(['doctor', '--quiet', '--ignore', 'sql_mode'], { databaseUrl })
    expect(quiet.stdout).toMatch(/^M\w+ .*\n\nNothing is wrong\.\n$/)
    await database.query(`SET GLOBAL sql_mode = 'STRICT_TRANS_TABLES'`)
  })
})

const digits = Array.from({ length: 10 }, (_, n) => `SELECT ${n} AS n`).join(' UNION ALL ')

describe('a clock', () => {
  /** The clock of a database, as a function of the true time in milliseconds. */
  const check = (clock: (millis: number) => number): Promise<Finding> =>
    checkClock(
      new Reader(async () => [], { clock: async () => clock(Date.now()) * 1000, byIndex: () => '' }),
      '',
    )

  it.each<[string, (millis: number) => number, Finding['level'], RegExp]>([
    ['as this machine’s', (now) => now, 'ok', /evenly/],
    ['an hour ahead', (now) => now + 3_600_000, 'warning', /1 h ahead of this machine's/],
    ['ten minutes behind', (now) => now - 600_000, 'warning', /10 min behind this machine's/],
    ['at half the speed', (now) => now / 2, 'problem', /another speed/],
    ['backwards', (now) => 1e13 - now, 'problem', /goes back/],
  ])('%s is told so', async (_, clock, level, found) => {
    expect(await check(clock)).toMatchObject({ level, found: expect.stringMatching(found) })
  })
})
