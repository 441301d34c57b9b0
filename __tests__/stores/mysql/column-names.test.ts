import { setTimeout as sleep } from 'node:timers/promises'
import { MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { charge, decide, hitOn, peek, policy } from '../policies.js'
import { type WatchedPool, watchedPool } from './watched-pool.js'

const never = (): AbortSignal => new AbortController().signal

/** The names of the columns of every result; several statements have a list of each. */
const namesOf = (fields: unknown): string[] =>
  Array.isArray(fields)
    ? fields.flatMap((field) => (Array.isArray(field) || field === undefined ? namesOf(field) : [field.name]))
    : []

// mysql2 compiles a parser for each list of names, and keeps it.
describeServers('the columns of what is read', (server) => {
  let database: TestDatabase
  let watched: WatchedPool
  let store: MysqlStore

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
    watched = watchedPool(database.uri, { multipleStatements: true })
    store = new MysqlStore({ pool: watched.pool, sweepSeconds: false })
    await store.install()
  })
  afterEach(async () => {
    await store.close()
    await watched.end()
    await database.drop()
  })

  it('have names that no key, time or number is in', async () => {
    const names = new Set<string>()
    watched.watch = (sql, send, callback) =>
      send(sql, ((error: unknown, results: unknown, fields: unknown) => {
        for (const name of namesOf(fields)) names.add(name)
        callback(error, results)
      }) as typeof callback)
    const short = policy({ limit: 3, windowSeconds: 0.5 })
    const keys = Array.from({ length: 5 }, (_, i) => `key ${i}`)
    let pruneLooks = 0
    for (let round = 0; round < 6; round += 1) {
      watched.sent = []
      for (const cost of [1, 1, 1, 2])
        await decide(
          store,
          keys.map((key) => hitOn(key, short, cost)),
        )
      pruneLooks += watched.sent.filter((sql) => sql.includes('OFFSET')).length
      await peek(store, 'key 1', short)
      const [verdict] = await decide(store, [hitOn(`other ${round}`, short)])
      await store.refund(
        [{ ...charge(`other ${round}`, short), cost: 1, at: verdict?.readings[0]?.at ?? 0 }],
        never(),
      )
      await sleep(600)
    }
    await store.reset(keys.map((key) => charge(key, short).key))
    await store.sweep()
    expect(pruneLooks).toBeGreaterThan(1)
    expect([...names].filter((name) => /\d{4}|x'/.test(name.replace('1970-01-01', '')))).toEqual([])
  })
})
