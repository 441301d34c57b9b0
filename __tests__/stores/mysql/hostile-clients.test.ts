import { createPool } from 'mysql2/promise'
import { type Decision, Limiter, MysqlStore, rateLimit } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { startServer } from '../../servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'

const logger = { error() {} }

describeServers('a client who wants the store to fail', (server) => {
  let database: TestDatabase
  let store: MysqlStore
  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
    store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    await store.install()
  })
  afterEach(async () => {
    await store.close()
    await database.drop()
  })

  it('gets nothing uncounted with 50,000 keys at once', async () => {
    const limit = 5
    const limiter = new Limiter({ store, limit, windowSeconds: 3600, logger })
    const hits: Promise<Decision>[] = []
    for (let i = 0; i < 50_000; i += 1) {
      hits.push(limiter.hit(`address ${i}`))
      // What he is after, meanwhile.
      if (i % 50 === 0) hits.push(limiter.hit('password of somebody'))
      // As requests arrive: some at a time.
      if (i % 500 === 0) await new Promise(setImmediate)
    }
    const decisions = await Promise.all(hits)
    const degraded = decisions.filter((decision) => decision.outcome === 'degraded')
    // More than the store can decide in time, or this shows nothing.
    expect(degraded.length).toBeGreaterThan(1000)
    const uncounted = degraded.filter(({ local }) => !local)
    expect(uncounted.slice(0, 3)).toEqual([])
    const guesses = decisions.filter(({ key, allowed }) => allowed && key === 'password of somebody')
    // By the store, and by this process while it could not ask.
    expect(guesses.length).toBeLessThanOrEqual(2 * limit)
    while ((await limiter.hit('somebody else')).outcome !== 'allowed');
  }, 120_000)

  it.each<[string, string | string[]]>([
    ['the longest key', 'k'.repeat(1_000_000)],
    ['an emoji cut in two', '\ud83d'],
    ['bytes that are no text', '\0\u0001\uffff\ufffe\u{10ffff}'],
    ['what an object would have', '__proto__'],
    ['very many parts', Array.from({ length: 5000 }, (_, i) => `part ${i}`)],
  ])('is counted as anybody with %s', async (_, key) => {
    const limiter = new Limiter({ store, limit: 3, windowSeconds: 3600, timeoutMs: 20_000, logger })
    const decisions = await Promise.all([1, 2, 3, 4].map(() => limiter.hit(key)))
    expect(decisions.map(({ outcome }) => outcome)).toEqual(['allowed', 'allowed', 'allowed', 'denied'])
  })

  it.each(['sliding-window', 'fixed-window'] as const)(
    'gets no sum out of its range with the highest costs: %s',
    async (algorithm) => {
      const limit = 1_000_000_000_000
      const limiter = new Limiter({
        ...{ store, algorithm, limit },
        windowSeconds: 3600,
        timeoutMs: 20_000,
        logger,
      })
      const decisions = await Promise.all(
        Array.from({ length: 20_000 }, () => limiter.hit('k', { cost: limit })),
      )
      const outcomes = new Set(decisions.slice(1).map(({ outcome }) => outcome))
      expect([decisions[0]?.outcome, ...outcomes]).toEqual(['allowed', 'denied'])
      await new Promise((resolve) => setTimeout(resolve, 1200))
      expect(await limiter.hit('k', { cost: limit })).toMatchObject({ outcome: 'denied' })
    },
    60_000,
  )

  it('keeps nobody else from the store with slow requests whose old hits are given back', async () => {
    const events = 10_000
    const own = new Limiter({ ...{ store, name: 'own' }, limit: events * 2, windowSeconds: 3600, logger })
    const others = new Limiter({
      ...{ store, name: 'others' },
      limit: 1_000_000,
      windowSeconds: 3600,
      logger,
    })
    const addresses = Array.from({ length: 12 }, (_, i) => `address ${i}`)
    const slow: Decision[][] = []
    for (const address of addresses) {
      const taken: Decision[] = []
      for (let i = 0; i < 20; i += 1) taken.push(await own.hit(address))
      slow.push(taken)
      // And the quick ones, as if he had sent them.
      const [row] = await database.query(
        `SELECT HEX(rkey) AS rkey, last_ts AS ts, total FROM rate_keys WHERE rkey = 'own:${address}'`,
      )
      for (let i = 1; i <= events; i += 1000) {
        const rows = Array.from({ length: 1000 }, (_, j) => {
          const nth = i + j
          return `(x'${row?.rkey}', ${Number(row?.ts) + nth}, 1, ${Number(row?.total) + nth})`
        })
        await database.query(`INSERT INTO rate_events (rkey, ts, hits, total) VALUES ${rows.join(', ')}`)
      }
      await database.query(
        `UPDATE rate_keys SET total = total + ${events}, last_ts = last_ts + ${events} WHERE rkey = x'${row?.rkey}'`,
      )
    }
    let isOver = false
    const outcomes: Record<string, number> = {}
    const traffic = async (key: string): Promise<void> => {
      while (!isOver) {
        const { outcome } = await others.hit(key)
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      }
    }
    const clients = Array.from({ length: 16 }, (_, i) => traffic(`client ${i}`))
    // One of each address at a time, so that each pass writes all of its later events anew.
    const rounds = slow[0]?.map((_, i) => slow.map((taken) => taken[i] as Decision)) ?? []
    const given = await Promise.all(rounds.flat().map((decision) => own.refund(decision))).finally(() => {
      isOver = true
    })
    await Promise.all(clients)
    expect(new Set(given)).toEqual(new Set([true]))
    expect(outcomes).toEqual({ allowed: expect.any(Number) })
    expect(await own.peek('address 7')).toMatchObject({ used: events })
  }, 60_000)

  it('gets nothing uncounted by keeping all connections of a pool busy that the application shares', async () => {
    const pool = createPool({ uri: database.uri, connectionLimit: 3 })
    const shared = new MysqlStore({ pool, sweepSeconds: false })
    const limiter = new Limiter({ store: shared, limit: 3, windowSeconds: 3600, logger })
    try {
      await shared.install()
      const slow = [1, 2, 3].map(() => pool.query('SELECT SLEEP(3)'))
      const allowed: boolean[] = []
      for (let i = 0; i < 8; i += 1) allowed.push((await limiter.hit('k')).allowed)
      expect(allowed).toEqual([true, true, true, false, false, false, false, false])
      await Promise.all(slow)
      while ((await limiter.hit('another')).outcome !== 'allowed');
    } finally {
      await shared.close()
      await pool.end()
    }
  }, 60_000)
})

describeServers('a server that takes small packets only', ({ kind }) => {
  it('takes what the longest keys of many limits make of a batch', async () => {
    const server = await startServer(kind, { flags: ['--max-allowed-packet=1M'] })
    const database = await createTestDatabase(server)
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    try {
      await store.install()
      const limits = Array.from({ length: 10 }, (_, i) => ({
        ...{ name: `limit-${i}`.padEnd(60, 'x'), limit: 2, windowSeconds: 3600 },
      }))
      const all = rateLimit({ store, limits, timeoutMs: 20_000, logger })
      for (let round = 0; round < 3; round += 1) {
        const hits = Array.from({ length: 600 }, (_, i) => all.hit(`${i} `.padEnd(200, 'é')))
        const outcomes = new Set((await Promise.all(hits)).map(({ outcome }) => outcome))
        expect([...outcomes]).toEqual([round < 2 ? 'allowed' : 'denied'])
      }
    } finally {
      await store.close()
      await database.close()
      await server.stop()
    }
  }, 120_000)
})
