import { createPool as createCallbackPool } from 'mysql2'
import { createPool } from 'mysql2/promise'
import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { admitted, charge, policy } from '../policies.js'

describe('constructing', () => {
  it('does no I/O', () => {
    // Nothing listens there, and nobody notices.
    new MysqlStore({ uri: 'mysql://root@127.0.0.1:1/none' })
  })

  it.each([
    ['nothing', {}],
    ['an address that is undefined, as of a variable that is not set', { uri: undefined }],
    ['an address of another database', { uri: 'postgres://localhost/x' }],
    ['two sources', { uri: 'mysql://localhost/x', pool: {} }],
    ['an object that is no pool', { pool: {} }],
    ['a number as a pool', { pool: 5 }],
    ['a class that only looks like one', { pool: { query: () => {}, getConnection: () => {} } }],
    ['text as connection options', { connection: 'localhost' }],
    ['install that is no boolean', { uri: 'mysql://localhost/x', install: 'yes' }],
    ['sweepSeconds of 0', { uri: 'mysql://localhost/x', sweepSeconds: 0 }],
    ['a misspelt option', { uri: 'mysql://localhost/x', sweepSecond: 5 }],
  ])('refuses %s', (_, options) => {
    expect(() => new MysqlStore(options as never)).toThrow(TypeError)
  })

  it('never repeats an address, which may hold a password', () => {
    expect(() => new MysqlStore({ uri: 'mysq://root:hunter2@localhost/x' })).toThrow(/^(?!.*hunter2)/)
  })
})

describeServers('a pool of the application', (server) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterAll(() => database.drop())

  let keys = 0
  /** Every test has a key of its own. */
  const threeOfFour = async (store: MysqlStore): Promise<boolean[]> => {
    keys += 1
    return admitted(store, 4, `key ${keys}`, policy({ limit: 3 }))
  }
  const EXPECTED = [true, true, true, false]

  it('may be of mysql2 or of mysql2/promise (hazard 84), and is not closed', async () => {
    const promised = createPool(database.uri)
    const called = createCallbackPool(database.uri)
    for (const pool of [promised, called]) {
      const store = new MysqlStore({ pool, sweepSeconds: false })
      expect(await threeOfFour(store)).toEqual(EXPECTED)
      await store.close()
    }
    await promised.query('SELECT 1')
    await called.promise().query('SELECT 1')
    await promised.end()
    await called.promise().end()
  })

  it('may be made from connection options', async () => {
    const { hostname: host, port, username: user } = new URL(database.uri)
    const store = new MysqlStore({ connection: { host, port: Number(port), user, database: database.name } })
    expect(await threeOfFour(store)).toEqual(EXPECTED)
    await store.close()
  })

  it.each([
    { rowsAsArray: true },
    { rowsAsArray: false },
    { nestTables: true },
    { supportBigNumbers: true, bigNumberStrings: true },
    { typeCast: false },
    { typeCast: () => 'anything' },
    { dateStrings: true },
    { decimalNumbers: true },
    { namedPlaceholders: true },
    { flags: ['-FOUND_ROWS'] },
    { charset: 'latin1' },
    { timezone: '+05:00' },
  ])('decides alike whatever its options: $0 (hazards 50, 83)', async (options) => {
    for (const multipleStatements of [true, false]) {
      const pool = createPool({ uri: database.uri, multipleStatements, ...(options as object) })
      const store = new MysqlStore({ pool, sweepSeconds: false })
      expect(await threeOfFour(store)).toEqual(EXPECTED)
      expect((await store.sweep()).ran).toBe(true)
      await pool.end()
    }
  })

  it('gets its session back as it was (hazard 45)', async () => {
    const pool = createPool({ uri: database.uri, connectionLimit: 1 })
    const level = server.kind === 'mysql' ? '@@transaction_isolation' : '@@tx_isolation'
    const session = async (): Promise<unknown> => {
      const [rows] = await pool.query(
        `SELECT ${level}, @@time_zone, @@sql_mode, @@autocommit, @@innodb_lock_wait_timeout, @@in_transaction`.replace(
          ', @@in_transaction',
          server.kind === 'mysql' ? '' : ', @@in_transaction',
        ),
      )
      return rows
    }
    const before = await session()
    const store = new MysqlStore({ pool, sweepSeconds: false })
    expect(await threeOfFour(store)).toEqual(EXPECTED)
    await store.sweep()
    expect(await session()).toEqual(before)
    await pool.end()
  })

  it('that has no connection to spare makes the decision degrade in time, not hang (hazards 71, 82)', async () => {
    const pool = createPool({ uri: database.uri, connectionLimit: 1 })
    const store = new MysqlStore({ pool, sweepSeconds: false })
    await store.install()
    const limiter = new Limiter({
      store,
      limit: 1,
      windowSeconds: 60,
      timeoutMs: 200,
      logger: { error: () => {} },
    })
    const theirs = await pool.getConnection()
    const decisions = await Promise.all(Array.from({ length: 500 }, (_, i) => limiter.hit(`waiting ${i}`)))
    expect(new Set(decisions.map(({ outcome }) => outcome))).toEqual(new Set(['degraded']))
    theirs.release()
    expect((await limiter.hit('waiting 0')).outcome).toBe('allowed')
    await pool.end()
  })

  it('may stand in another time zone, session by session (hazards 28, 29)', async () => {
    const by = policy({ limit: 3, windowSeconds: 60 })
    const stores = []
    for (const zone of ['+05:00', '-08:00']) {
      const pool = createPool({ uri: database.uri, connectionLimit: 1 })
      await pool.query(`SET time_zone = '${zone}'`)
      stores.push({ pool, store: new MysqlStore({ pool, sweepSeconds: false }) })
    }
    const outcomes = []
    for (let i = 0; i < 4; i += 1) {
      const { store } = stores[i % 2] as (typeof stores)[number]
      outcomes.push(...(await admitted(store, 1, 'zones', by)))
    }
    expect(outcomes).toEqual(EXPECTED)
    for (const { pool } of stores) await pool.end()
  })

  it('whose idle connections were all killed serves the next decision (hazards 55, 77)', async () => {
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    // At once, so that there are two connections.
    const peek = store.peek([charge('a', policy())], new AbortController().signal)
    expect(await threeOfFour(store)).toEqual(EXPECTED)
    await peek
    const admin = createCallbackPool(server.uri)
    const [rows] = await admin
      .promise()
      .query('SELECT ID AS id FROM information_schema.PROCESSLIST WHERE DB = ? AND COMMAND = ?', [
        database.name,
        'Sleep',
      ])
    const ids = (rows as { id: number }[]).map(({ id }) => id)
    expect(ids.length).toBeGreaterThanOrEqual(2)
    let next: Promise<boolean[]> | undefined
    for (const id of ids.slice(1)) await admin.promise().query(`KILL ${id}`)
    await new Promise<void>((resolve) => {
      admin.query(`KILL ${ids[0]}`, () => {
        // What the server says to the others is not heard before the next decision is asked for.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
        next = threeOfFour(store)
        resolve()
      })
    })
    expect(await next).toEqual(EXPECTED)
    await admin.promise().end()
    await store.close()
  })
})
