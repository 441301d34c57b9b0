import { type Connection, createConnection, createPool } from 'mysql2/promise'
import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'

const TIMEOUT_MS = 250
const KEYS = Array.from({ length: 20 }, (_, i) => `key ${String.fromCharCode(97 + i)}`)
const LOCKED = 'key k'

describeServers('a key that another session keeps locked', (server) => {
  let database: TestDatabase
  let other: Connection
  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
    other = await createConnection(database.uri)
  })
  afterEach(async () => {
    await other.end()
    await database.drop()
  })

  const lock = async (): Promise<void> => {
    await other.query('START TRANSACTION')
    await other.query(`SELECT * FROM rate_keys WHERE rkey = 'default:${LOCKED}' FOR UPDATE`)
  }
  const create = (store: MysqlStore): Limiter =>
    new Limiter({
      store,
      limit: 1_000_000,
      windowSeconds: 600,
      timeoutMs: TIMEOUT_MS,
      logger: { error() {} },
    })
  /**
   * Each key hit every 20 ms for so long; how many hits were degraded: on the locked key, on others, and of these in the
   * second half, when the key has long been found. A machine that stands still for a moment degrades some then too.
   */
  const hitFor = async (limiter: Limiter, milliseconds: number) => {
    const begin = performance.now()
    const degraded = new Map<string, number>()
    let asked = 0
    let lateOthers = 0
    let slowest = 0
    const caller = async (key: string): Promise<void> => {
      const hits: Promise<void>[] = []
      while (performance.now() - begin < milliseconds) {
        asked += 1
        const sent = performance.now()
        hits.push(
          limiter.hit(key).then(({ outcome }) => {
            slowest = Math.max(slowest, performance.now() - sent)
            if (outcome !== 'degraded') return
            degraded.set(key, (degraded.get(key) ?? 0) + 1)
            if (key !== LOCKED && sent - begin > milliseconds / 2) lateOthers += 1
          }),
        )
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      await Promise.all(hits)
    }
    await Promise.all(KEYS.map(caller))
    const others = [...degraded].reduce((sum, [key, count]) => sum + (key === LOCKED ? 0 : count), 0)
    return { asked, others, lateOthers, slowest, locked: degraded.get(LOCKED) ?? 0 }
  }

  it.each(['a store with connections of its own', 'a store on a pool of the application'])(
    'degrades its own hits only, but for the moment until it is found: %s',
    async (which) => {
      const pool = createPool({ uri: database.uri, connectionLimit: 4 })
      const store = which.includes('pool')
        ? new MysqlStore({ pool, sweepSeconds: false })
        : new MysqlStore({ uri: database.uri, sweepSeconds: false })
      try {
        const limiter = create(store)
        await store.install()
        for (const key of KEYS) await limiter.hit(key)
        await lock()
        const { asked, others, lateOthers, slowest, locked } = await hitFor(limiter, 6000)
        expect(locked).toBeGreaterThan(asked / KEYS.length - 30)
        expect(others).toBeLessThan(asked * 0.15)
        expect(lateOthers).toBeLessThan(asked * 0.1)
        expect(slowest).toBeLessThan(TIMEOUT_MS + 250)
        expect(limiter.storeHealth.state).toBe('closed')

        await other.query('ROLLBACK')
        await new Promise((resolve) => setTimeout(resolve, 1500))
        expect(await limiter.hit(LOCKED)).toMatchObject({ outcome: 'allowed' })
      } finally {
        await store.close()
        await pool.end()
      }
    },
    60_000,
  )

  it('leaves no transaction of ours behind that waits for it and keeps other keys locked', async () => {
    const pool = createPool({ uri: database.uri, connectionLimit: 4, multipleStatements: true })
    const store = new MysqlStore({ pool, sweepSeconds: false })
    const limiter = create(store)
    await store.install()
    for (const key of KEYS) await limiter.hit(key)
    await lock()
    await Promise.all(KEYS.map((key) => limiter.hit(key)))
    await limiter.hit('another')
    // By default a transaction waits 50 seconds for a lock, and keeps those that it has.
    await other.query('SET SESSION innodb_lock_wait_timeout = 2')
    for (const key of KEYS)
      await other.query(`SELECT * FROM rate_keys WHERE rkey = 'default:${key}' FOR UPDATE`)
    await other.query('ROLLBACK')
    await store.close()
    await pool.end()
  }, 60_000)
})
