import { createPool } from 'mysql2/promise'
import { MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { hit, policy } from '../policies.js'
import { storeContract } from '../store-contract.js'
import { openMysql } from '../subjects.js'

const STRICT =
  'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ONLY_FULL_GROUP_BY,STRICT_ALL_TABLES,NO_ZERO_DATE,PIPES_AS_CONCAT,NO_UNSIGNED_SUBTRACTION'

describeServers('sessions of every kind', (server) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterAll(() => database.drop())

  describe.each([
    ["sql_mode = '' (hazard 40)", `SET SESSION sql_mode = ''`],
    ['a strict sql_mode (hazards 40 to 42)', `SET SESSION sql_mode = '${STRICT}'`],
    ['sql_safe_updates (hazard 43)', 'SET SESSION sql_safe_updates = 1'],
  ])('with %s', (_, setting) => {
    storeContract(() => openMysql(database, { setting }))
  })

  it.each(['READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
    'at %s are exact under concurrency, and deadlock into nobody (hazards 2, 3)',
    async (level) => {
      const pool = createPool({ uri: database.uri, connectionLimit: 10 })
      pool.on('connection', (connection) => {
        void connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`)
      })
      await expectExact(pool)
    },
  )

  if (server.kind === 'mariadb') {
    it('with snapshot isolation are exact under concurrency (hazard 7)', async () => {
      const pool = createPool({ uri: database.uri, connectionLimit: 10 })
      pool.on('connection', (connection) => {
        void connection.query('SET SESSION innodb_snapshot_isolation = ON')
      })
      await expectExact(pool)
    })
  }

  /** Ten stores share the pool, so that ten transactions are under way: 300 hits on ten keys at limit ten. */
  async function expectExact(pool: ReturnType<typeof createPool>): Promise<void> {
    const name = `level${Date.now()}`
    const stores = Array.from({ length: 10 }, () => new MysqlStore({ pool, sweepSeconds: false }))
    await stores[0]?.install()
    const by = policy({ name, limit: 10 })
    const readings = await Promise.all(
      stores.flatMap((store, s) =>
        Array.from({ length: 30 }, (_, i) => hit(store, `key ${(i + s) % 10}`, by)),
      ),
    )
    expect(readings.filter(({ denied }) => !denied)).toHaveLength(100)
    await pool.end()
  }
})
