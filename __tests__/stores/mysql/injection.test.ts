import { createPool } from 'mysql2/promise'
import { Limiter, type LimiterOptions, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'

/** Texts that end a literal in one mode or character set or another. */
const HOSTILE = [
  `'; DROP TABLE canary; -- `,
  `"; DROP TABLE canary; -- `,
  '`; DROP TABLE canary; -- ',
  `\\'; DROP TABLE canary; -- `,
  `\\"; DROP TABLE canary; # `,
  `' OR 1=1 OR '`,
  `x') ON DUPLICATE KEY UPDATE total = 0; -- `,
  `'/*`,
  `*/; DELETE FROM canary; /*`,
  `0x27; DELETE FROM canary`,
  `'||(SELECT SLEEP(9))||'`,
  `\0'; DROP TABLE canary; -- `,
  // Bytes 0xbf 0x27 after a careless conversion to GBK: the trick that ends literals which were escaped.
  `\u00bf'; DROP TABLE canary; -- `,
  `縗'; DROP TABLE canary; -- `,
]
const WILDCARDS = ['%', '_', '*']
const KEYS = [...HOSTILE, ...WILDCARDS]

const SQL_MODES = [
  '',
  'STRICT_ALL_TABLES',
  'NO_BACKSLASH_ESCAPES',
  'ANSI_QUOTES',
  'PIPES_AS_CONCAT',
  'IGNORE_SPACE',
  'HIGH_NOT_PRECEDENCE',
  'PAD_CHAR_TO_FULL_LENGTH',
  'ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES',
]
/** Modes of one server that the other does not know. */
const ONLY = { mysql: ['TIME_TRUNCATE_FRACTIONAL'], mariadb: ['ORACLE', 'MSSQL', 'EMPTY_STRING_IS_NULL'] }

describeServers('SQL in what users write', (server) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(server.kind)
    await database.query('CREATE TABLE canary (id INT PRIMARY KEY); INSERT INTO canary VALUES (1)')
  })
  afterAll(() => database.drop())

  const sessions = [...SQL_MODES, ...ONLY[server.kind]].map((mode) => `SET SESSION sql_mode = '${mode}'`)

  it.each([...sessions, 'SET NAMES gbk', 'SET NAMES latin1'])(
    'is a key and nothing else, after %s',
    async (setting) => {
      const pool = createPool({ uri: database.uri, connectionLimit: 1, multipleStatements: true })
      await pool.query(setting)
      const store = new MysqlStore({ pool, sweepSeconds: false })
      const name = `n${Date.now()}`
      const limiter = new Limiter({ store, name, limit: 2, windowSeconds: 3600, timeoutMs: 20_000 })
      await limiter.hit('victim')

      const outcomes = await Promise.all(
        KEYS.flatMap((key) => [1, 2, 3].map(async () => (await limiter.hit(key)).outcome)),
      )
      expect(outcomes).toEqual(KEYS.flatMap(() => ['allowed', 'allowed', 'denied']))
      for (const key of KEYS) {
        expect(await limiter.peek(key)).toMatchObject({ key, used: 2 })
        await limiter.reset(key)
        const decision = await limiter.hit([key, key])
        expect(decision).toMatchObject({ outcome: 'allowed', used: 1 })
        expect(await limiter.refund(decision)).toBe(true)
        await limiter.penalize(key, 1)
        await limiter.block(key, 60)
        expect(await limiter.peek(key)).toMatchObject({ outcome: 'denied', used: 1 })
      }

      expect(await limiter.peek('victim')).toMatchObject({ outcome: 'allowed', used: 1 })
      expect(await database.query('SELECT id FROM canary')).toEqual([{ id: 1 }])
      await store.close()
      await pool.end()
    },
    60_000,
  )

  it.each(HOSTILE)('is refused as a name and as an option: %j', async (text) => {
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    const options: LimiterOptions = { store, name: 'n', limit: 1, windowSeconds: 1 }
    for (const option of ['name', 'limit', 'windowSeconds', 'retainSeconds', 'algorithm']) {
      expect(() => new Limiter({ ...options, [option]: text })).toThrow(TypeError)
    }
    const limiter = new Limiter(options)
    const wrong = text as unknown as number
    await expect(limiter.hit('a', { cost: wrong })).rejects.toThrow(TypeError)
    await expect(limiter.penalize('a', wrong)).rejects.toThrow(TypeError)
    await expect(limiter.block('a', wrong)).rejects.toThrow(TypeError)
    await store.close()
  })
})
