import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { Limiter, type LimiterOptions, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import type { PrivateServer } from '../../servers/server.js'
import { startServer } from '../../servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'

const TIMEOUT_MS = 250
/** A loaded machine may be late to run a timer. */
const LATENESS_MS = 250
/** Within which a store is used again after its return: two seconds, and what a loaded machine takes on top. */
const RECOVERY_MS = 2000 + LATENESS_MS

describeServers('the breaker of a server', ({ kind }) => {
  let server: PrivateServer
  let database: TestDatabase
  let store: MysqlStore
  let limiter: Limiter
  const logged: string[] = []
  const create = (options: Partial<LimiterOptions> = {}): Limiter =>
    new Limiter({
      store,
      limit: 1_000_000,
      windowSeconds: 600,
      timeoutMs: TIMEOUT_MS,
      logger: { error: (line) => logged.push(line) },
      ...options,
    })
  const state = (): string => limiter.storeHealth.state

  /** Traffic until something is so: several callers, each hit after hit. Gives the time that took, and the slowest answer. */
  const hitUntil = async (isSo: () => boolean, most = 20_000): Promise<{ took: number; slowest: number }> => {
    const begin = performance.now()
    let slowest = 0
    const caller = async (name: number): Promise<void> => {
      for (let i = 0; !isSo(); i += 1) {
        if (performance.now() - begin > most) throw new Error('it did not come to that')
        const asked = performance.now()
        await limiter.hit(`key ${name} ${i % 50}`)
        slowest = Math.max(slowest, performance.now() - asked)
        // As requests come: not all at once when they are answered at once.
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
    }
    await Promise.all([1, 2, 3, 4].map(caller))
    return { took: performance.now() - begin, slowest }
  }
  const linesOfStore = (): string[] => logged.filter((line) => line.startsWith('MysqlStore'))

  beforeAll(async () => {
    server = await startServer(kind)
  }, 120_000)
  afterAll(() => server?.stop())
  beforeEach(async () => {
    logged.length = 0
    database = await createTestDatabase(server)
    // Not root, who may write to a read-only server.
    await database.query(`CREATE USER IF NOT EXISTS app@'127.0.0.1' IDENTIFIED BY 'app'`)
    await database.query(`GRANT ALL ON ${database.name}.* TO app@'127.0.0.1'`)
    const uri = new URL(database.uri)
    uri.username = 'app'
    uri.password = 'app'
    store = new MysqlStore({ uri: uri.href, sweepSeconds: false })
    limiter = create()
    await store.install()
    await hitUntil(() => true)
    expect((await limiter.hit('a')).outcome).toBe('allowed')
  })
  afterEach(async () => {
    await store.close()
    await database.close()
  })

  const faults: [string, () => Promise<void>, () => Promise<void>][] = [
    [
      'killed and restarted',
      async () => {
        await server.signal('SIGKILL')
        await server.exited()
      },
      () => server.restart(),
    ],
    ['frozen and thawed', () => server.signal('SIGSTOP'), () => server.signal('SIGCONT')],
    [
      'made read-only and writable again',
      async () => {
        await database.query('SET GLOBAL read_only = 1')
      },
      async () => {
        await database.query('SET GLOBAL read_only = 0')
      },
    ],
    [
      'without a table of ours, which the store makes anew',
      async () => {
        await database.query('DROP TABLE rate_events')
        await database.query('CREATE TABLE rate_events (nonsense INT)')
      },
      async () => {
        await database.query('DROP TABLE rate_events')
      },
    ],
  ]
  it.each(faults)(
    'opens on one that is %s, and closes within two seconds',
    async (_, breakIt, mendIt) => {
      let mended = false
      try {
        await breakIt()
        const { took, slowest } = await hitUntil(() => state() === 'open')
        expect(took).toBeLessThan(3 * TIMEOUT_MS + 500 + LATENESS_MS)
        expect(slowest).toBeLessThan(TIMEOUT_MS + LATENESS_MS)

        const times: number[] = []
        for (let i = 0; i < 200; i += 1) {
          const asked = performance.now()
          const decision = await limiter.hit(`key ${i}`)
          times.push(performance.now() - asked)
          expect(decision).toMatchObject({ outcome: 'degraded', error: { code: 'ERR_STORE_DOWN' } })
        }
        // But for moments when the machine was busy elsewhere.
        expect(times.sort((x, y) => x - y)[180]).toBeLessThan(20)

        mended = true
        await mendIt()
        const back = await hitUntil(() => state() === 'closed')
        expect(back.took).toBeLessThan(RECOVERY_MS)
        expect(back.slowest).toBeLessThan(TIMEOUT_MS + LATENESS_MS)
      } finally {
        // For the tests to come.
        if (!mended) await mendIt()
      }
      expect((await limiter.hit('a')).outcome).toBe('allowed')
      expect(linesOfStore()).toEqual([
        expect.stringMatching(/^MysqlStore of the rate limiters is down: ERR_STORE_/),
        expect.stringMatching(/^MysqlStore of the rate limiters is back after \d+\.\d s/),
      ])
    },
    120_000,
  )

  it('closes without any traffic', async () => {
    await server.signal('SIGSTOP')
    await hitUntil(() => state() === 'open')
    await server.signal('SIGCONT')
    const until = performance.now() + RECOVERY_MS + 1000
    while (state() !== 'closed' && performance.now() < until) await new Promise(setImmediate)
    expect(state()).toBe('closed')
  }, 120_000)

  it('lets decisions open no connection while it is open: only the probe does', async () => {
    let connections = 0
    const sockets = new Set<Socket>()
    // A server that takes connections and says nothing.
    const silent = createServer((socket) => {
      connections += 1
      sockets.add(socket)
    })
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const elsewhere = new MysqlStore({ uri: `mysql://app:app@127.0.0.1:${port}/x`, sweepSeconds: false })
    try {
      limiter = create({ store: elsewhere })
      await hitUntil(() => state() === 'open')
      connections = 0
      const until = performance.now() + 3000
      let answered = 0
      while (performance.now() < until) {
        for (let i = 0; i < 100; i += 1) await limiter.hit(`key ${i}`)
        answered += 100
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      expect(answered).toBeGreaterThan(1000)
      // A probe takes 750 ms to give up, and waits for about 500.
      expect(connections).toBeLessThanOrEqual(4)
    } finally {
      await elsewhere.close()
      for (const socket of sockets) socket.destroy()
      silent.close()
    }
  }, 60_000)

  it('keeps a process alive no longer than it takes to close the store', async () => {
    await server.signal('SIGSTOP')
    await hitUntil(() => state() === 'open')
    await server.signal('SIGCONT')
    await store.close()
    expect((await limiter.hit('a')).outcome).toBe('degraded')
  }, 60_000)
})
