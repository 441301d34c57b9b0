import { createConnection } from 'mysql2/promise'
import { MysqlStore } from '../../../lib/index.js'
import { withinDeadline } from '../../../lib/stores/before-abort.js'
import { describeServers } from '../../servers/describe-servers.js'
import type { PrivateServer } from '../../servers/server.js'
import { startServer } from '../../servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { hit, policy } from '../policies.js'

const probe = (store: MysqlStore): Promise<void> => withinDeadline(750, (signal) => store.probe(signal))

describeServers('a probe of a server', ({ kind }) => {
  let server: PrivateServer
  let database: TestDatabase
  let store: MysqlStore

  beforeAll(async () => {
    server = await startServer(kind)
  }, 120_000)
  afterAll(() => server?.stop())
  beforeEach(async () => {
    database = await createTestDatabase(server)
    // root could write to a read-only server.
    await database.query(`CREATE USER IF NOT EXISTS app@'127.0.0.1' IDENTIFIED BY 'app'`)
    await database.query(`GRANT ALL ON ${database.name}.* TO app@'127.0.0.1'`)
    const uri = new URL(database.uri)
    uri.username = 'app'
    uri.password = 'app'
    store = new MysqlStore({ uri: uri.href, sweepSeconds: false })
  })
  afterEach(async () => {
    await store.close()
    await database.drop()
  })

  it('fails while the server is read-only, and passes when it is not any more (hazard 46)', async () => {
    await store.install()
    await database.query('SET GLOBAL read_only = 1')
    try {
      await expect(probe(store)).rejects.toMatchObject({ code: 'ERR_STORE_READ_ONLY' })
    } finally {
      await database.query('SET GLOBAL read_only = 0')
    }
    await probe(store)
  })

  it('creates tables that are missing, before the first decision and later', async () => {
    await probe(store)
    expect((await hit(store, 'a', policy())).used).toBe(1)
    await database.query('DROP TABLE rate_events')
    await expect(probe(store)).rejects.toMatchObject({ code: 'ERR_STORE_SCHEMA' })
    await probe(store)
    expect((await hit(store, 'b', policy())).used).toBe(1)
  })

  it('creates nothing where that is not wanted', async () => {
    const checking = new MysqlStore({ uri: database.uri, install: false, sweepSeconds: false })
    await expect(probe(checking)).rejects.toMatchObject({ code: 'ERR_STORE_SCHEMA' })
    await store.install()
    await probe(checking)
    await checking.close()
  })

  it.each(['rate_keys', 'rate_events'])('fails while %s is locked by an ALTER', async (table) => {
    await store.install()
    const other = await createConnection(database.uri)
    try {
      await other.query(`LOCK TABLES ${table} WRITE`)
      await expect(probe(store)).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
    } finally {
      await other.end()
    }
    await probe(store)
  })

  it('does not wait behind a call that is stuck', async () => {
    await hit(store, 'a', policy())
    const other = await createConnection(database.uri)
    try {
      await other.query('START TRANSACTION')
      await other.query(`SELECT * FROM rate_keys WHERE rkey = 'p:a' FOR UPDATE`)
      const stuck = store.reset(['p:a'])
      // A while after the reset, which is the only thing it could wait for.
      await new Promise((resolve) => setTimeout(resolve, 100))
      await probe(store)
      await other.query('ROLLBACK')
      await stuck
    } finally {
      await other.end()
    }
  })
})
