import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'

const HITS = 6
const PAUSE_MS = 700

describeServers('events that have left every window', (server) => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(() => database.drop())

  it('are deleted by processes that live for one hit, and by those that remember no key for long', async () => {
    for (let i = 0; i < HITS; i += 1) {
      const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
      const limiter = new Limiter({ store, limit: 10, windowSeconds: 0.1, timeoutMs: 60_000 })
      expect((await limiter.hit('a')).outcome).toBe('allowed')
      await store.close()
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
    // Events are deleted at most once a second.
    const [row] = await database.query('SELECT COUNT(*) AS n FROM rate_events')
    expect(Number(row?.n)).toBeLessThanOrEqual(3)
  })
})

describeServers('a pool that is told to reset its sessions', (server) => {
  it('keeps their settings, and admits exactly the limit', async () => {
    const database = await createTestDatabase(server.kind)
    const uri = `${database.uri}?resetOnRelease=true`
    const stores = Array.from({ length: 4 }, () => new MysqlStore({ uri, sweepSeconds: false }))
    try {
      const limiters = stores.map(
        (store) => new Limiter({ store, limit: 20, windowSeconds: 60, timeoutMs: 60_000 }),
      )
      for (let round = 0; round < 5; round += 1) {
        const hits = Array.from({ length: 40 }, (_, i) => limiters[i % limiters.length]?.hit(`k${round}`))
        const allowed = (await Promise.all(hits)).filter((decision) => decision?.allowed)
        expect(allowed).toHaveLength(20)
      }
    } finally {
      await Promise.all(stores.map((store) => store.close()))
      await database.drop()
    }
  })
})
