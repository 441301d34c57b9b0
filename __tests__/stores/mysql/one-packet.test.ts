import { setTimeout as sleep } from 'node:timers/promises'
import { MysqlStore } from '../../../lib/index.js'
import { checkHistory } from '../../processes/check-history.js'
import { type Denial, recordDenials } from '../../processes/record-denials.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { admitted, charge, decide, hit, hitOn, peek, policy } from '../policies.js'
import { type CommandCounter, countCommands } from './command-counter.js'

const never = (): AbortSignal => new AbortController().signal

describeServers('a decision in one packet', (server) => {
  let database: TestDatabase
  let counter: CommandCounter
  /** Ours, through the counter, and another process's. */
  let store: MysqlStore
  let other: MysqlStore
  const roomy = policy({ limit: 100 })

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
    counter = await countCommands(database.uri)
    store = new MysqlStore({ uri: counter.uri, sweepSeconds: false })
    other = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    await store.install()
  })
  afterEach(async () => {
    await store.close()
    await other.close()
    await counter.stop()
    await database.drop()
  })
  const tripsOf = async (work: () => Promise<unknown>): Promise<number> => {
    counter.take()
    await work()
    return counter.take()
  }
  const stored = async (): Promise<number> => {
    const [row] = await database.query('SELECT COALESCE(SUM(hits), 0) AS n FROM rate_events')
    return Number(row?.n)
  }

  it('is taken for a key of this process alone: two round trips at first, then one', async () => {
    await hit(store, 'warm', roomy)
    expect(await tripsOf(() => hit(store, 'a', roomy))).toBe(2)
    for (let i = 0; i < 5; i += 1) expect(await tripsOf(() => hit(store, 'a', roomy))).toBe(1)
    expect(await hit(store, 'a', roomy)).toMatchObject({ used: 7, denied: false })
    expect(await stored()).toBe(8)
  })

  it('is taken for new keys too, once new ones are what comes', async () => {
    await admitted(other, 2, 'theirs', roomy)
    for (let i = 0; i < 8; i += 1) await hit(store, `new ${i}`, roomy)
    expect(await tripsOf(() => hit(store, 'newer', roomy))).toBe(1)
    expect(await hit(store, 'newer', roomy)).toMatchObject({ used: 2 })
    // One that is new to this process alone is found out, and then none is taken to be new.
    expect(await hit(store, 'theirs', roomy)).toMatchObject({ used: 3, denied: false })
    expect(await tripsOf(() => hit(store, 'newest', roomy))).toBe(2)
    expect((await peek(other, 'newer', roomy)).used).toBe(2)
    const [head] = await database.query(`SELECT * FROM rate_keys WHERE rkey = 'p:newer'`)
    const [first] = await database.query(`SELECT ts FROM rate_events WHERE rkey = 'p:newer' ORDER BY ts`)
    expect(head).toMatchObject({
      total: 2,
      memo_ts: first?.ts,
      pruned_ts: Number(first?.ts) - 1,
      log_version: first?.ts,
    })
  })

  it('is not taken for a key that was blocked before it was ever hit', async () => {
    for (let i = 0; i < 9; i += 1) await hit(store, `new ${i}`, roomy)
    await other.block(charge('a', roomy), 200_000, never())
    expect((await hit(store, 'a', roomy)).denied).toBe(true)
    await sleep(250)
    expect(await hit(store, 'a', roomy)).toMatchObject({ used: 1, denied: false })
    expect(await hit(store, 'a', roomy)).toMatchObject({ used: 2, denied: false })
  })

  it('is taken for several keys and both algorithms, and tells the same as another process reads', async () => {
    const hourly = policy({ name: 'hourly', limit: 10, windowSeconds: 3600, algorithm: 'fixed-window' })
    const both = { charges: [charge('a', roomy), charge('a', hourly)], cost: 2 }
    await decide(store, [both])
    expect(await tripsOf(() => decide(store, [both]))).toBe(1)
    expect((await peek(other, 'a', roomy)).used).toBe(4)
    expect((await peek(other, 'a', hourly)).used).toBe(4)
  })

  it('is not taken for a denial, which is decided under the lock', async () => {
    expect(await admitted(store, 3, 'a', policy())).toEqual([true, true, true])
    expect(await tripsOf(() => hit(store, 'a', policy()))).toBe(2)
    expect((await hit(store, 'a', policy())).denied).toBe(true)
  })

  it('is not taken for a lease, nor for what is stored after it, until its end is past', async () => {
    const lease = { units: 10, micros: 150_000 }
    await hit(store, 'a', roomy)
    const ask = (): Promise<unknown> => decide(store, [{ charges: [charge('a', roomy)], cost: 1, lease }])
    expect(await tripsOf(ask)).toBe(2)
    expect(await tripsOf(() => hit(store, 'a', roomy))).toBe(2)
    expect((await peek(other, 'a', roomy)).used).toBe(12)
    await sleep(200)
    await hit(store, 'a', roomy)
    expect(await tripsOf(() => hit(store, 'a', roomy))).toBe(1)
    expect(await hit(store, 'a', roomy)).toMatchObject({ used: 15, denied: false })
    expect(await stored()).toBe(15)
    const rows = await database.query('SELECT last_ts, stamp_ts FROM rate_keys')
    expect(rows).toEqual([{ last_ts: expect.any(Number), stamp_ts: 0 }])
  })

  it('gives way when another process has written the key, and is exact', async () => {
    const ten = policy({ limit: 10 })
    const outcomes: boolean[] = []
    for (let i = 0; i < 14; i += 1) {
      // Three in a row by the same one, so that it takes the key for its own.
      const by = Math.floor(i / 3) % 2 === 0 ? store : other
      outcomes.push(...(await admitted(by, 1, 'a', ten)))
    }
    expect(outcomes.filter(Boolean)).toHaveLength(10)
    expect(outcomes.slice(0, 10).every(Boolean)).toBe(true)
    expect(await stored()).toBe(10)
  })

  it.each([
    ['a block', () => other.block(charge('a', roomy), 60_000_000, never()), { denied: true }],
    ['a reset', () => other.reset([charge('a', roomy).key]), { used: 1 }],
    ['a refund', async () => other.refund([{ ...charge('a', roomy), cost: 1, at }], never()), { used: 3 }],
    ['the removal of its row', () => database.query('DELETE FROM rate_keys'), { denied: false }],
  ])('sees %s by another process', async (_, change, expected) => {
    await hit(store, 'a', roomy)
    await hit(store, 'a', roomy)
    at = (await hit(store, 'a', roomy)).at
    await change()
    expect(await hit(store, 'a', roomy)).toMatchObject(expected)
  })
  let at = 0

  it('is tried again, when it was stopped and the connection is lost at the next', async () => {
    for (let i = 0; i < 3; i += 1) await hit(store, 'a', roomy)
    await hit(other, 'a', roomy)
    counter.breakAt((sql) => sql.includes('FOR UPDATE'))
    expect(await hit(store, 'a', roomy)).toMatchObject({ used: 5, denied: false })
    expect(counter.connections).toBeGreaterThan(1)
    expect(await stored()).toBe(5)
  })

  it('charges all keys or none when one of them is not as remembered', async () => {
    const both = { charges: [charge('a', roomy), charge('b', policy({ limit: 5 }))], cost: 1 }
    await decide(store, [both])
    await decide(store, [both])
    await admitted(other, 3, 'b', policy({ limit: 5 }))
    const [verdict] = await decide(store, [both])
    expect(verdict?.allowed).toBe(false)
    expect((await peek(other, 'a', roomy)).used).toBe(2)
  })

  describe('with fifty keys', () => {
    const keys = Array.from({ length: 50 }, (_, i) => `key ${i}`)
    const all = [...keys, 'new one', 'new two']
    const hitAll = async (names: readonly string[]) =>
      decide(
        store,
        names.map((key) => hitOn(key, roomy)),
      )
    beforeEach(async () => {
      await hitAll(keys)
      await hitAll(keys)
    })

    it('is taken for those that are there and those that are new together', async () => {
      expect(await tripsOf(() => hitAll(all))).toBe(1)
      expect(await tripsOf(() => hitAll(all))).toBe(1)
      expect((await peek(other, 'key 7', roomy)).used).toBe(4)
      expect((await peek(other, 'new two', roomy)).used).toBe(2)
      expect(await stored()).toBe(204)
    })

    it.each<[string, () => Promise<unknown>]>([
      ['a hit on one', () => hit(other, 'key 31', roomy)],
      ['a reset of one', () => other.reset([charge('key 31', roomy).key])],
      [
        'a refund of one',
        async () => other.refund([{ ...charge('key 31', roomy), cost: 1, at: last }], never()),
      ],
      ['a first hit on a new one', () => hit(other, 'new one', roomy)],
    ])('gives way to %s by another process, and writes nothing twice', async (_, change) => {
      const verdicts = await hitAll(keys)
      last = verdicts[31]?.readings[0]?.at ?? 0
      const before = await stored()
      await change()
      const added = (await stored()) - before
      const after = await hitAll(all)
      expect(after.every(({ allowed }) => allowed)).toBe(true)
      const sum = (await stored()) - before - added
      expect(sum).toBe(all.length)
      for (const key of all) {
        const { used: counted } = await peek(other, key, roomy)
        const [row] = await database.query(
          `SELECT COALESCE(SUM(hits), 0) AS n FROM rate_events WHERE rkey = 'p:${key}'`,
        )
        expect([key, counted]).toEqual([key, Number(row?.n)])
      }
    })
    let last = 0
  })

  it('counts by the instant that the database took, across the end of a window', async () => {
    const fixed = policy({ limit: 1000, windowSeconds: 0.05, algorithm: 'fixed-window' })
    const windows = new Map<number, number>()
    for (const end = Date.now() + 1000; Date.now() < end; ) {
      const { used, windowStart, at } = await hit(store, 'a', fixed)
      expect(at - (at % 50_000)).toBe(windowStart)
      expect(used).toBe((windows.get(windowStart) ?? 0) + 1)
      windows.set(windowStart, used)
    }
    expect(windows.size).toBeGreaterThan(10)
  })

  it.each(['', 'STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES'])(
    'stops before COMMIT in every sql_mode: %p',
    async (mode) => {
      await database.query(`SET GLOBAL sql_mode = '${mode}'`)
      const fixed = policy({ name: 'fixed', limit: 100, algorithm: 'fixed-window', windowSeconds: 3600 })
      const fresh = new MysqlStore({ uri: database.uri, sweepSeconds: false })
      try {
        for (const by of [roomy, fixed]) {
          await admitted(fresh, 3, 'a', by)
          await admitted(other, 3, 'a', by)
          expect((await hit(fresh, 'a', by)).used).toBe(7)
        }
      } finally {
        await fresh.close()
        await database.query('SET GLOBAL sql_mode = DEFAULT')
      }
      const rows = await database.query('SELECT total FROM rate_keys ORDER BY total')
      expect(rows.map(({ total }) => Number(total))).toEqual([7, 7])
    },
  )

  it('holds every window and justifies every denial while two processes share a few keys', async () => {
    const by = policy({ limit: 4, windowSeconds: 0.3, retainSeconds: 60 })
    const denials: Denial[] = []
    const stores = [recordDenials(store, denials), recordDenials(other, denials)]
    // Long enough for many of both, on a slow machine too.
    const begin = Date.now()
    const isOver = (): boolean => {
      const passed = Date.now() - begin
      return passed > 20_000 || (passed > 4000 && denials.length > 100)
    }
    const caller = async (from: number): Promise<void> => {
      for (let i = from; !isOver(); i += 1) {
        // Sometimes one alone for a while, sometimes in turns.
        await hit(stores[Math.floor(i / 7) % 2] as MysqlStore, `key ${i % 3}`, by)
        if (i % 11 === 0) await sleep(5)
      }
    }
    await Promise.all([0, 5, 9].map(caller))
    const rows = await database.query('SELECT rkey, ts, hits FROM rate_events')
    const admissions = rows.map(({ rkey, ts, hits }) => ({
      key: String(rkey),
      ts: Number(ts),
      hits: Number(hits),
    }))
    expect(admissions.length).toBeGreaterThan(100)
    expect(denials.length).toBeGreaterThan(100)
    expect(checkHistory(admissions, denials, 4, 300_000)).toEqual([])
  })

  it('leaves no transaction open behind any of the ways to use the store', async () => {
    await hit(store, 'a', roomy)
    const { at } = await hit(store, 'a', roomy)
    await peek(store, 'a', roomy)
    await store.refund([{ ...charge('a', roomy), cost: 1, at }], never())
    await store.block(charge('b', roomy), 1000, never())
    await store.probe(never())
    await store.sweep()
    await store.reset([charge('a', roomy).key])
    const open = await database.query(
      `SELECT p.ID FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p
ON p.ID = t.trx_mysql_thread_id WHERE p.DB = DATABASE() AND p.ID <> CONNECTION_ID()`,
    )
    expect(open).toEqual([])
  })
})
