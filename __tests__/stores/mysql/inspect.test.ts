import { createPool } from 'mysql2/promise'
import { MysqlStore, type StoreInspection } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createDmlUser } from '../../servers/dml-user.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { admitted, decide, hitOn, policy } from '../policies.js'

const inspect = (store: MysqlStore): Promise<StoreInspection> => store.inspect(new AbortController().signal)

describeServers('a store that is asked how large it is', (server) => {
  let database: TestDatabase
  const stores: MysqlStore[] = []
  const open = (options: object = { uri: database.uri }): MysqlStore => {
    const store = new MysqlStore({ sweepSeconds: false, ...options })
    stores.push(store)
    return store
  }

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
    await database.drop()
  })

  it('tells of the server, too: its connections, and what the tables take on disk', async () => {
    const store = open()
    await admitted(store, 2, 'a', policy())
    const { keys, events, precision, bytes, connections } = await inspect(store)
    expect({ keys, events, precision }).toEqual({ keys: 1, events: 2, precision: 'exact' })
    expect(bytes).toBeGreaterThanOrEqual(16_384)
    expect(connections?.open).toBeGreaterThanOrEqual(1)
    expect(connections?.most).toBeGreaterThanOrEqual(connections?.open as number)
  })

  it('needs no right but those of a store, and works on a pool of yours, statement by statement', async () => {
    await open().install()
    const user = await createDmlUser(database)
    const pool = createPool({ uri: user.uri, supportBigNumbers: true, bigNumberStrings: true })
    try {
      const store = open({ pool, install: false })
      await admitted(store, 1, 'a', policy())
      expect(await inspect(store)).toMatchObject({ keys: 1, events: 1, precision: 'exact' })
    } finally {
      await pool.end()
      await user.drop()
    }
  })

  it('tells what the server estimates now, not what it estimated when it was last asked', async () => {
    const store = open()
    await store.install()
    expect((await inspect(store)).keys).toBe(0)
    for (let i = 0; i < 16_000; i += 500) {
      await decide(
        store,
        Array.from({ length: 500 }, (_, j) => hitOn(`key ${i + j}`, policy())),
      )
    }
    const { keys, precision } = await inspect(store)
    expect(precision).toBe('estimate')
    expect(keys).toBeGreaterThan(12_000)
    expect(keys).toBeLessThan(24_000)
  }, 120_000)

  it('leaves no transaction open, and does not hold a decision up', async () => {
    const store = open()
    await admitted(store, 1, 'a', policy())
    const [inspection] = await Promise.all([inspect(store), decide(store, [hitOn('b', policy())])])
    expect(inspection.keys).toBeGreaterThanOrEqual(1)
    // What is committed afterwards is seen: no snapshot was left.
    await admitted(store, 1, 'c', policy())
    expect((await inspect(store)).keys).toBe(3)
  })
})
