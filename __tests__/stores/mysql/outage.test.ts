import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { freePort } from '../../servers/free-port.js'
import type { PrivateServer } from '../../servers/server.js'
import { startServer } from '../../servers/start-server.js'
import { createTestDatabase } from '../../servers/test-database.js'
import { hit, policy } from '../policies.js'

const TIMEOUT_MS = 300
/** A loaded machine may be late to run a timer. */
const LATENESS_MS = 250

describeServers('a server that fails', ({ kind }) => {
  let server: PrivateServer
  const logged: string[] = []
  const open = (store: MysqlStore, onStoreError: 'allow' | 'deny' = 'allow'): Limiter =>
    new Limiter({
      store,
      limit: 1000,
      windowSeconds: 600,
      timeoutMs: TIMEOUT_MS,
      onStoreError,
      logger: { error: (message) => logged.push(message) },
    })
  /** Until the store answers again, as traffic would: hit after hit. */
  const recovered = async (limiter: Limiter): Promise<number> => {
    const begin = performance.now()
    for (let i = 0; ; i += 1) {
      if ((await limiter.hit(`back ${i}`)).outcome === 'allowed') return performance.now() - begin
      if (performance.now() - begin > 20_000) throw new Error('the store did not come back')
    }
  }
  const slowestOf = async (
    limiter: Limiter,
    hits: number,
  ): Promise<{ outcomes: Set<string>; slowest: number }> => {
    let slowest = 0
    const outcomes = await Promise.all(
      Array.from({ length: hits }, async (_, i) => {
        const sent = performance.now()
        const { outcome } = await limiter.hit(`key ${i}`)
        slowest = Math.max(slowest, performance.now() - sent)
        return outcome
      }),
    )
    return { outcomes: new Set(outcomes), slowest }
  }

  beforeEach(() => {
    logged.length = 0
  })
  afterEach(() => server?.stop())

  it('and is down when the process starts crashes nothing; the limiter works once it is up', async () => {
    const port = await freePort()
    server = await startServer(kind, { port })
    const database = await createTestDatabase(server)
    await database.close()
    await server.signal('SIGKILL')
    await server.exited()

    const store = new MysqlStore({ uri: database.uri })
    const limiter = open(store)
    const decision = await limiter.hit('a')
    expect(decision).toMatchObject({
      outcome: 'degraded',
      allowed: true,
      error: { code: 'ERR_STORE_CONNECTION' },
    })
    expect((await open(store, 'deny').hit('a')).allowed).toBe(false)
    await limiter.hit('a')
    // Once for each limiter, not once a hit.
    expect(logged).toHaveLength(2)

    await server.restart()
    await recovered(limiter)
    expect(await limiter.peek('back 0')).toMatchObject({ outcome: 'allowed' })
    await store.close()
  }, 120_000)

  it('and freezes keeps nobody waiting past the deadline, and is used again when it thaws (hazard 141)', async () => {
    server = await startServer(kind)
    const database = await createTestDatabase(server)
    const store = new MysqlStore({ uri: database.uri })
    const limiter = open(store)
    await store.install()
    expect((await limiter.hit('a')).outcome).toBe('allowed')

    await server.signal('SIGSTOP')
    for (let round = 0; round < 3; round += 1) {
      const { outcomes, slowest } = await slowestOf(limiter, 200)
      expect(outcomes).toEqual(new Set(['degraded']))
      expect(slowest).toBeLessThan(TIMEOUT_MS + LATENESS_MS)
    }
    await server.signal('SIGCONT')
    await recovered(limiter)
    await database.close()
    await store.close()
  }, 120_000)

  it('and is killed while hits are under way counts none of them twice', async () => {
    server = await startServer(kind)
    const database = await createTestDatabase(server)
    const store = new MysqlStore({ uri: database.uri })
    const limiter = open(store)
    await store.install()
    let admitted = 0
    let asked = 0
    let killed = false
    const caller = async (): Promise<void> => {
      while (!killed) {
        asked += 1
        if ((await limiter.hit('hot')).outcome === 'allowed') admitted += 1
      }
    }
    const callers = Promise.all(Array.from({ length: 8 }, caller))
    while (admitted < 100) await new Promise(setImmediate)
    killed = true
    await server.signal('SIGKILL')
    await callers
    await server.exited()
    await server.restart()
    await recovered(limiter)
    const [row] = await (await createTestDatabase(server)).query(
      `SELECT SUM(hits) AS hits FROM ${database.name}.rate_events WHERE rkey = 'default:hot'`,
    )
    // What was told is stored; a commit whose answer was lost is stored too, once.
    expect(Number(row?.hits)).toBeGreaterThanOrEqual(admitted)
    expect(Number(row?.hits)).toBeLessThanOrEqual(asked)
    await store.close()
  }, 120_000)
})

describeServers('a server with a statement based binary log (hazard 44)', ({ kind }) => {
  it('refuses READ COMMITTED, and is exact all the same', async () => {
    const flags = [
      '--log-bin=bin',
      '--server-id=1',
      '--binlog-format=STATEMENT',
      '--transaction-isolation=REPEATABLE-READ',
    ]
    const server = await startServer(kind, { flags })
    try {
      const database = await createTestDatabase(server)
      const stores = Array.from(
        { length: 8 },
        () => new MysqlStore({ uri: database.uri, sweepSeconds: false }),
      )
      await stores[0]?.install()
      const by = policy({ limit: 10 })
      const readings = await Promise.all(
        stores.flatMap((store, s) =>
          Array.from({ length: 40 }, (_, i) => hit(store, `key ${(i + s) % 10}`, by)),
        ),
      )
      expect(readings.filter(({ denied }) => !denied)).toHaveLength(100)
      await Promise.all(stores.map((store) => store.close()))
      await database.drop()
    } finally {
      await server.stop()
    }
  }, 120_000)
})
