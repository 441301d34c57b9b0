import { createConnection } from 'mysql2/promise'
import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'

describeServers('closing a store', (server) => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(() => database.drop())

  it('lets the batch under way finish, and refuses what waits and what comes', async () => {
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    const limiter = new Limiter({
      store,
      limit: 5,
      windowSeconds: 60,
      timeoutMs: 5000,
      onStoreError: 'deny',
      logger: { error() {} },
    })
    await limiter.hit('a')
    const other = await createConnection(database.uri)
    await other.query('START TRANSACTION')
    await other.query(`SELECT * FROM rate_keys WHERE rkey = 'default:a' FOR UPDATE`)
    const underWay = limiter.hit('a')
    // Its batch has left without the next hit.
    await new Promise(setImmediate)
    const waiting = limiter.hit('b')
    const closing = store.close()
    const late = limiter.hit('c')
    await other.query('ROLLBACK')
    expect(await underWay).toMatchObject({ outcome: 'allowed', used: 2 })
    const closed = { outcome: 'degraded', error: { code: 'ERR_STORE_CLOSED' } }
    expect(await waiting).toMatchObject(closed)
    expect(await late).toMatchObject(closed)
    await closing
    await other.end()
    expect(limiter.storeHealth.state).toBe('closed')
    const [row] = await database.query(`SELECT SUM(hits) AS hits FROM rate_events WHERE rkey = 'default:a'`)
    expect(Number(row?.hits)).toBe(2)
  })

  it('does not wait for what nobody asked for, such as a reset that hangs', async () => {
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    const limiter = new Limiter({ store, limit: 5, windowSeconds: 60 })
    await limiter.hit('a')
    const other = await createConnection(database.uri)
    await other.query('START TRANSACTION')
    await other.query(`SELECT * FROM rate_keys WHERE rkey = 'default:a' FOR UPDATE`)
    const reset = expect(limiter.reset('a')).rejects.toMatchObject({ code: 'ERR_STORE_CLOSED' })
    await new Promise((resolve) => setTimeout(resolve, 50))
    const begin = performance.now()
    await store.close()
    expect(performance.now() - begin).toBeLessThan(1000)
    await reset
    await other.end()
  })
})
