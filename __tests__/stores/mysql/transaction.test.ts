import { createConnection } from 'mysql2/promise'
import { MysqlStore, type Reading, StoreError } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { admitted, charge, decide, hit, hitOn, peek, policy } from '../policies.js'
import { failOnce, type WatchedPool, watchedPool } from './watched-pool.js'

/** What a unit sends, by how each statement begins. */
const STATEMENTS = [
  'SET TRANSACTION',
  'START',
  'INSERT INTO rate_keys',
  'SELECT',
  'INSERT INTO rate_events',
  'REPLACE',
]

const endsInCommit = (sql: string): boolean => /(^|\n)COMMIT$/.test(sql)

describeServers('a decision on MySQL', (server) => {
  let database: TestDatabase
  let watched: WatchedPool
  let store: MysqlStore
  const use = async (options: { multipleStatements: boolean }): Promise<void> => {
    watched = watchedPool(database.uri, options)
    store = new MysqlStore({ pool: watched.pool, sweepSeconds: false })
    await store.install()
    await hit(store, 'warm', policy())
    watched.sent = []
  }
  const hits = async (): Promise<number> => {
    const [row] = await database.query(
      `SELECT COALESCE(SUM(hits), 0) AS n FROM rate_events WHERE rkey = 'p:a'`,
    )
    return Number(row?.n)
  }

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(async () => {
    await store.close()
    await watched.end()
    await database.drop()
  })

  it('says that conflicts took the time, when they did, and not that the server did not answer', async () => {
    await use({ multipleStatements: true })
    watched.watch = (sql, send, callback) => {
      if (!sql.includes('INSERT INTO rate_keys')) return send(sql, callback)
      send('ROLLBACK', () => callback(Object.assign(new Error('deadlock'), { errno: 1213 }), undefined))
    }
    const giveUp = new AbortController()
    const decided = store.decide({ hits: [hitOn('a', policy())], refusals: [] }, giveUp.signal)
    setTimeout(() => giveUp.abort(new Error('enough')), 100)
    await expect(decided).rejects.toMatchObject({ code: 'ERR_STORE_CONFLICT' })
    expect(await hits()).toBe(0)
  })

  describe('in round trips', () => {
    beforeEach(() => use({ multipleStatements: true }))
    const trips = (): number => watched.sent.splice(0).length

    it('takes two for keys that are new and for keys that are not', async () => {
      const batch = Array.from({ length: 100 }, (_, i) => hitOn(`key ${i}`, policy()))
      await decide(store, batch)
      expect(trips()).toBe(2)
      await decide(store, batch)
      expect(trips()).toBe(2)
    })

    it('takes two for a batch of denials, and commits nothing', async () => {
      await admitted(store, 3, 'a', policy())
      watched.sent = []
      expect((await hit(store, 'a', policy())).denied).toBe(true)
      expect(watched.sent.some(endsInCommit)).toBe(false)
      expect(trips()).toBe(2)
    })

    it('takes two while a key lives at its limit, each hit as the oldest leaves', async () => {
      const by = policy({ limit: 3, windowSeconds: 0.2 })
      await admitted(store, 3, 'a', by)
      const counted: number[] = []
      for (const end = Date.now() + 1500; Date.now() < end; ) {
        watched.sent = []
        if (!(await hit(store, 'a', by)).denied) counted.push(trips())
      }
      expect(counted.length).toBeGreaterThan(10)
      // One more where the machine stood still between asking and reading, longer than a hint looks ahead.
      expect(counted.filter((count) => count === 2).length).toBeGreaterThan(counted.length * 0.8)
      expect(Math.max(...counted)).toBeLessThanOrEqual(3)
    })
  })

  it('reads as few rows with 100,000 events in the window as with 10', async () => {
    await use({ multipleStatements: true })
    const by = policy({ limit: 1_000_000, windowSeconds: 3600 })
    const rowsRead = async (key: string, events: number): Promise<number[]> => {
      const now = Date.now() * 1000
      for (let from = 0; from < events; from += 10_000) {
        const rows = Array.from({ length: Math.min(10_000, events - from) }, (_, i) => {
          const n = from + i
          // A fifth of them has left the window, but not the table, as with an audit log.
          return `('p:${key}', ${now - Math.round(4500e6 * (1 - n / events)) - 1000}, 1, ${n + 1})`
        })
        await database.query(`INSERT INTO rate_events VALUES ${rows.join(', ')}`)
      }
      await database.query(
        `INSERT INTO rate_keys VALUES ('p:${key}', ${events}, ${now - 1000}, 0, 3600000000, ${now - 3700e6}, 0, 0, 0, 0, 1, ${now + 1e10})`,
      )
      const reads: number[] = []
      for (let i = 0; i < 3; i += 1) {
        const others = ['x', 'y', 'z'].map((other) => hitOn(other, by))
        await database.query('FLUSH STATUS')
        const before = await handlerReads()
        const [verdict] = await decide(store, [hitOn(key, by), ...others])
        expect(verdict?.readings[0]?.used).toBeGreaterThan(events * 0.79)
        reads.push((await handlerReads()) - before)
      }
      return reads
    }
    // Of the whole server: nothing else uses it but the tests of this file, one at a time, so take the least seen.
    const handlerReads = async (): Promise<number> => {
      const rows = await database.query(`SHOW GLOBAL STATUS LIKE 'Handler_read%'`)
      return rows.reduce((sum, { Value }) => sum + Number(Value), 0)
    }
    const few = Math.min(...(await rowsRead('few', 10)))
    const many = Math.min(...(await rowsRead('many', 100_000)))
    expect({ few, many: many <= few * 1.3 + 20 ? 'alike' : many }).toEqual({ few, many: 'alike' })
  }, 60_000)

  describe.each([true, false])(
    'when others are in the way (several statements in a packet: %s)',
    (multipleStatements) => {
      beforeEach(() => use({ multipleStatements }))

      it.each(STATEMENTS)(
        'runs the whole unit again after a deadlock at %s (hazard 9)',
        async (beginning) => {
          watched.watch = failOnce((sql) => sql.includes(beginning), 1213, 'ER_LOCK_DEADLOCK')
          expect((await hit(store, 'a', policy())).used).toBe(1)
          expect(await hits()).toBe(1)
        },
      )

      it.each([
        [1213, 'ER_LOCK_DEADLOCK'],
        [1180, 'ER_ERROR_DURING_COMMIT'],
        [3101, 'ER_TRANSACTION_ROLLBACK_DURING_COMMIT'],
        [1020, 'ER_CHECKREAD'],
      ])(
        'takes error %i at COMMIT for a conflict, as clusters report it (hazards 7, 56)',
        async (errno, code) => {
          watched.watch = failOnce(endsInCommit, errno, code)
          expect(await admitted(store, 4, 'a', policy())).toEqual([true, true, true, false])
          expect(await hits()).toBe(3)
        },
      )

      it('leaves nothing behind when a lock is not granted in time (hazard 8)', async () => {
        await hit(store, 'a', policy())
        const holder = await createConnection(database.uri)
        await holder.query('START TRANSACTION')
        await holder.query(`SELECT * FROM rate_keys WHERE rkey = 'p:a' FOR UPDATE`)
        const reason = new StoreError('ERR_STORE_TIMEOUT', 'too late')
        const late = new AbortController()
        setTimeout(() => late.abort(reason), 300)
        await expect(store.decide({ hits: [hitOn('a', policy())], refusals: [] }, late.signal)).rejects.toBe(
          reason,
        )
        // A hit on another key does not wait for this one (hazard 4).
        expect((await hit(store, 'b', policy())).denied).toBe(false)
        await holder.query('ROLLBACK')
        await holder.end()
        expect(await admitted(store, 3, 'a', policy())).toEqual([true, true, false])
        expect(await hits()).toBe(3)
      })
    },
  )

  describe('when the connection is lost', () => {
    beforeEach(() => use({ multipleStatements: false }))
    const lost = (): Error =>
      Object.assign(new Error('lost'), { code: 'PROTOCOL_CONNECTION_LOST', fatal: true })

    it('before COMMIT, decides once more on a new one', async () => {
      let failed = false
      watched.watch = (sql, send, callback) => {
        if (failed || !sql.startsWith('REPLACE')) return send(sql, callback)
        failed = true
        callback(lost(), undefined)
      }
      expect((await hit(store, 'a', policy())).used).toBe(1)
      expect(await hits()).toBe(1)
    })

    it('in COMMIT, counts the hit and admits it to nobody a second time (hazard 96)', async () => {
      let failed = false
      watched.watch = (sql, send, callback) => {
        if (failed || sql !== 'COMMIT') return send(sql, callback)
        failed = true
        send(sql, () => callback(lost(), undefined))
      }
      await expect(hit(store, 'a', policy())).rejects.toMatchObject({ code: 'ERR_STORE_CONNECTION' })
      expect(await hits()).toBe(1)
      expect(await admitted(store, 3, 'a', policy())).toEqual([true, true, false])
    })
  })

  it('sends each statement in a packet of its own on Galera, whatever the unit', async () => {
    watched = watchedPool(database.uri, { multipleStatements: true })
    // The one thing that tells a node of a cluster from a single server.
    watched.watch = (sql, send, callback) => {
      if (sql.includes('wsrep_on')) callback(null, [['wsrep_on', 'ON']])
      else send(sql, callback)
    }
    store = new MysqlStore({ pool: watched.pool, sweepSeconds: false })
    const { at } = await hit(store, 'a', policy())
    const signal = (): AbortSignal => new AbortController().signal
    await store.refund([{ ...charge('a', policy()), cost: 1, at }], signal())
    await store.block(charge('b', policy()), 1_000_000, signal())
    await store.reset([charge('a', policy()).key])
    await store.sweep()
    const commits = watched.sent.filter(endsInCommit)
    expect(commits.length).toBeGreaterThanOrEqual(6)
    expect(watched.sent.filter((sql) => sql.includes(';'))).toEqual([])
  })

  it('forgets a log of thousands step by step, and nothing that was counted since the first step', async () => {
    const by = policy({ algorithm: 'fixed-window', audit: true, limit: 10_000, retainSeconds: 3600 })
    await use({ multipleStatements: true })
    const other = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    try {
      const { at } = await hit(store, 'a', by)
      const { key } = charge('a', by)
      const rows = Array.from({ length: 2500 }, (_, i) => `('${key}', ${at - 1 - i}, 1, 0)`)
      await database.query(`INSERT INTO rate_events (rkey, ts, hits, total) VALUES ${rows.join(', ')}`)
      await store.block(charge('a', by), 600_000_000, new AbortController().signal)
      const between: Reading[] = []
      watched.watch = (sql, send, callback) => {
        if (!sql.includes('memo_window = 0')) return send(sql, callback)
        send(sql, async (error, results) => {
          between.push(await hit(other, 'a', by))
          callback(error, results)
        })
      }
      await store.reset([key])
      expect(between.map(({ denied, used }) => [denied, used])).toEqual([
        [false, 1],
        [false, 2],
        [false, 3],
      ])
      expect((await peek(store, 'a', by)).used).toBe(3)
      const [row] = await database.query(`SELECT COUNT(*) AS n FROM rate_events WHERE rkey = '${key}'`)
      expect(Number(row?.n)).toBe(3)
    } finally {
      await other.close()
    }
  })

  it('sweeps in one process at a time, while hits go on', async () => {
    await use({ multipleStatements: true })

    await decide(
      store,
      Array.from({ length: 500 }, (_, i) => hitOn(`gone ${i}`, policy())),
    )
    await database.query(`UPDATE rate_keys SET expires_at = 1 WHERE rkey LIKE 'p:gone%'`)
    const [first, second, , third] = await Promise.all([
      store.sweep(),
      store.sweep(),
      admitted(store, 5, 'a', policy()),
      store.sweep(),
    ])
    const results = [first, second, third]
    expect(results.filter(({ ran }) => !ran).length).toBeGreaterThan(0)
    expect(results.reduce((sum, { keys }) => sum + keys, 0)).toBe(500)
    expect(await hits()).toBe(3)
  })
})
