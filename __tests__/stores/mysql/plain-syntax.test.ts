import { execFile } from 'node:child_process'
import { Limiter, MysqlStore } from '../../../lib/index.js'
import { builtProgram } from '../../operate/cli/run-cli.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { decide, hitOn, policy } from '../policies.js'
import { type CommandCounter, countCommands } from './command-counter.js'

jest.setTimeout(120_000)

/** What MySQL 5.7 cannot read, each with an example: a pattern that finds nothing must not be a wrong pattern. */
const NEWER: readonly [what: string, pattern: RegExp, example: string][] = [
  [
    'a common table expression',
    /\bWITH\s+(RECURSIVE\s+)?`?\w+`?\s*(\([^)]*\)\s*)?AS\s*\(/i,
    'WITH a (b) AS (SELECT 1)',
  ],
  ['a window function', /\)\s*OVER\s*(\(|\w)/i, 'SELECT ROW_NUMBER() OVER (ORDER BY ts)'],
  ['a named window', /\bWINDOW\s+\w+\s+AS\b/i, 'SELECT 1 FROM t WINDOW w AS (ORDER BY a)'],
  ['SKIP LOCKED', /\bSKIP\s+LOCKED\b/i, 'SELECT 1 FROM t FOR UPDATE SKIP LOCKED'],
  ['NOWAIT', /\bNOWAIT\b/i, 'SELECT 1 FROM t FOR UPDATE NOWAIT'],
  ['FOR SHARE', /\bFOR\s+SHARE\b/i, 'SELECT 1 FROM t FOR SHARE'],
  ['FOR UPDATE OF', /\bFOR\s+UPDATE\s+OF\b/i, 'SELECT 1 FROM t FOR UPDATE OF t'],
  [
    'a row alias',
    /\bVALUES?\s*\([\s\S]*\)\s*AS\s+\w+/i,
    'INSERT INTO t VALUES (1) AS new ON DUPLICATE KEY UPDATE a = new.a',
  ],
  ['VALUES ROW', /\bVALUES\s+ROW\s*\(/i, 'VALUES ROW(1)'],
  ['RETURNING', /\bRETURNING\b/i, 'DELETE FROM t RETURNING a'],
  ['JSON_TABLE', /\bJSON_TABLE\s*\(/i, `SELECT * FROM JSON_TABLE('[]', '$')`],
  ['LATERAL', /\bLATERAL\b/i, 'SELECT 1 FROM t, LATERAL (SELECT 1) AS x'],
  ['a default that is an expression', /\bDEFAULT\s*\(/i, 'CREATE TABLE t (a INT DEFAULT (1 + 1))'],
  ['EXCEPT', /\bEXCEPT\b/i, 'SELECT 1 EXCEPT SELECT 2'],
  ['INTERSECT', /\bINTERSECT\b/i, 'SELECT 1 INTERSECT SELECT 2'],
  ['TABLE as a statement', /^\s*TABLE\s+\w/i, 'TABLE t'],
  ['a check that is kept', /\bCHECK\s*\(/i, 'CREATE TABLE t (a INT CHECK (a > 0))'],
  ['an index on an expression', /\b(KEY|INDEX)\s+\w+\s*\(\s*\(/i, 'CREATE TABLE t (a INT, KEY k ((a + 1)))'],
  ['an invisible column or index', /\bINVISIBLE\b/i, 'ALTER TABLE t ALTER INDEX k INVISIBLE'],
  ['RENAME COLUMN', /\bRENAME\s+COLUMN\b/i, 'ALTER TABLE t RENAME COLUMN a TO b'],
  [
    'a column IF EXISTS',
    /\b(COLUMN|INDEX|KEY)\s+IF\s+(NOT\s+)?EXISTS\b/i,
    'ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT',
  ],
  ['CREATE OR REPLACE TABLE', /\bCREATE\s+OR\s+REPLACE\s+TABLE\b/i, 'CREATE OR REPLACE TABLE t (a INT)'],
  ['a collation of 8.0', /utf8mb4_0900/i, 'CREATE TABLE t (a TEXT) COLLATE utf8mb4_0900_ai_ci'],
  ['a hint that sets a variable', /\bSET_VAR\s*\(/i, 'SELECT /*+ SET_VAR(sort_buffer_size = 1M) */ 1'],
  ['SET PERSIST', /\bSET\s+(PERSIST|@@PERSIST)/i, 'SET PERSIST a = 1'],
  ['a sequence', /\b(NEXTVAL|NEXT\s+VALUE\s+FOR)\b/i, 'SELECT NEXTVAL(s)'],
  ['GROUPING', /\bGROUPING\s*\(/i, 'SELECT GROUPING(a) FROM t'],
  ['MEMBER OF', /\bMEMBER\s+OF\b/i, `SELECT 1 MEMBER OF ('[1]')`],
  ['a function of regular expressions', /\bREGEXP_\w+\s*\(/i, `SELECT REGEXP_REPLACE('a', 'b', 'c')`],
  ['SET STATEMENT', /\bSET\s+STATEMENT\b/i, 'SET STATEMENT max_statement_time = 1 FOR SELECT 1'],
]

/** What a user who may read and write rows is not allowed. */
const PRIVILEGED =
  /\b(CREATE\s+(EVENT|PROCEDURE|FUNCTION|TRIGGER|TEMPORARY|USER)|CALL\s|SET\s+GLOBAL|SET\s+@@GLOBAL|LOCK\s+TABLES|FLUSH|GET_LOCK|LOAD\s+DATA|INTO\s+OUTFILE|TRUNCATE|GRANT|REVOKE)/i

describe.each(NEWER)('the pattern of %s', (_, pattern, example) => {
  it('finds its example', () => expect(example).toMatch(pattern))
})

describeServers('everything that is sent', ({ kind }) => {
  let database: TestDatabase
  let relay: CommandCounter
  beforeAll(async () => {
    database = await createTestDatabase(kind)
    relay = await countCommands(database.uri)
  })
  afterAll(async () => {
    await relay.stop()
    await database.drop()
  })

  /** Makes a store do all that it can. */
  async function doEverything(multipleStatements: boolean): Promise<void> {
    await database.query('DROP TABLE IF EXISTS rate_keys, rate_events, rate_limit_schema')
    const store = new MysqlStore({ uri: relay.uri, multipleStatements, sweepSeconds: false })
    await store.install()
    const options = { store, name: `all-${multipleStatements}`, timeoutMs: 30_000 }
    const sliding = new Limiter({ ...options, limit: 5, windowSeconds: 3600 })
    const short = new Limiter({ ...options, name: 'short', limit: 50, windowSeconds: 0.01 })
    const fixed = new Limiter({
      ...options,
      limit: 5,
      windowSeconds: 60,
      algorithm: 'fixed-window',
      audit: true,
    })
    const month = new Limiter({ ...options, limit: 5, window: 'month' })
    const leased = new Limiter({ ...options, name: 'leased', limit: 5000, windowSeconds: 60, lease: 50 })
    for (const limiter of [sliding, short, fixed, month, leased]) {
      await Promise.all(
        Array.from({ length: 20 }, (_, i) => limiter.hit(`key ${i % 3}`, { cost: 1 + (i % 2) })),
      )
      // One alone goes upon what is remembered.
      for (let i = 0; i < 3; i += 1) await limiter.refund(await limiter.hit('alone'))
      await limiter.peek('key 1')
      await limiter.penalize('key 1', 3)
      await limiter.block('key 2', 1)
      await limiter.hit('key 1', { cost: 4 })
    }
    // What has left its window is deleted, after a second.
    for (const end = Date.now() + 1_300; Date.now() < end; ) await short.hit('key 0')
    // A hit that is denied asks when enough of its window is free.
    await decide(store, [hitOn('key 0', policy({ name: options.name, limit: 5, windowSeconds: 3600 }), 4)])
    await store.probe(new AbortController().signal)
    await store.probe(new AbortController().signal, ['a', 'b'])
    for (const limiter of [sliding, fixed, month]) await limiter.reset('key 1')
    await database.query('UPDATE rate_keys SET expires_at = 1')
    await store.sweep()
    await store.close()
  }

  const sent = (): string[] => [...new Set(relay.takeStatements().flat())].filter((sql) => sql.trim() !== '')
  /** Without what is quoted, which is no syntax. */
  const bare = (sql: string): string => sql.replace(/'[^']*'/g, "''").replace(/^\s*--.*$/gm, '')
  const expectPlain = (statements: readonly string[]): void => {
    const newer = statements.flatMap((sql) =>
      NEWER.filter(([, pattern]) => pattern.test(bare(sql))).map(([what]) => `${what}: ${sql}`),
    )
    expect(newer).toEqual([])
    expect(statements.filter((sql) => PRIVILEGED.test(bare(sql)))).toEqual([])
  }

  it.each([true, false])(
    'by a store is the syntax of MySQL 5.7, and needs no right but to rows (several in a packet: %s)',
    async (multipleStatements) => {
      await doEverything(multipleStatements)
      const statements = sent()
      // All kinds of statements were seen.
      const parts = [
        ...[
          'CREATE TABLE',
          'FOR UPDATE',
          'ON DUPLICATE KEY UPDATE',
          'REPLACE INTO',
          'INSERT INTO rate_events',
        ],
        ...['DELETE FROM rate_events WHERE', 'DELETE FROM rate_keys', 'UPDATE rate_events SET total'],
        ...[
          'GREATEST(blocked_until',
          'sweep_until',
          'information_schema',
          'MOD(e.total',
          'ts DESC LIMIT 1 OFFSET',
          'OFFSET',
          'TIMESTAMPDIFF',
        ],
        ...(multipleStatements ? ['LAST_INSERT_ID('] : []),
      ]
      expect(parts.filter((part) => !statements.some((sql) => sql.includes(part)))).toEqual([])
      expectPlain(statements)
    },
  )

  it('by the command line is too', async () => {
    const commands = [
      ['install'],
      ...[['status', 'a'], ['top'], ['top', '--name', 'all-true'], ['sweep'], ['doctor']],
      ...[['block', 'a', '1', '--name', 'x'], ['reset', 'a'], ['schema']],
    ]
    for (const args of commands) {
      await new Promise((resolve) => {
        execFile(process.execPath, [builtProgram(), ...args, '--url', relay.uri], resolve)
      })
    }
    const statements = sent()
    for (const part of ['the first key from here on', 'from the end of the index', 'SHOW GLOBAL VARIABLES']) {
      expect(statements.filter((sql) => sql.includes(part))).not.toEqual([])
    }
    expectPlain(statements)
  })
})
