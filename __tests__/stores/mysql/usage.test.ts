import { MysqlStore, StoreError } from '../../../lib/index.js'
import { expiredUsage, keepUsage, readUsage } from '../../../lib/stores/mysql/usage-statements.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createDmlUser } from '../../servers/dml-user.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { charge, hit, policy } from '../policies.js'
import { totalOf } from '../usage-contract.js'
import { type WatchedPool, watchedPool } from './watched-pool.js'

const YEAR_SECONDS = 31_536_000
const short = policy({ limit: 1_000_000, windowSeconds: 0.05 })
const KEYS = ['a', 'b', 'c'].map((key) => charge(key, short).key)

describeServers('usage on MySQL', (server) => {
  let database: TestDatabase
  let watched: WatchedPool
  const stores: MysqlStore[] = []
  let ending = async (): Promise<void> => {}
  const use = (multipleStatements = true): MysqlStore => {
    watched = watchedPool(database.uri, { multipleStatements })
    const { end } = watched
    ending = async () => {
      ending = async () => {}
      await end()
    }
    return keep(
      new MysqlStore({ pool: watched.pool, sweepSeconds: false, keepUsageSeconds: { p: YEAR_SECONDS } }),
    )
  }
  const keep = (store: MysqlStore): MysqlStore => {
    stores.push(store)
    return store
  }
  const open = (): MysqlStore =>
    keep(new MysqlStore({ uri: database.uri, sweepSeconds: false, keepUsageSeconds: { p: YEAR_SECONDS } }))

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()))
    await ending()
    await database.drop()
  })

  const totals = async (store: MysqlStore): Promise<number[]> => {
    const all: number[] = []
    for (const key of KEYS) all.push(await totalOf(store, key))
    return all
  }
  const expireAll = () => database.query('UPDATE rate_keys SET expires_at = 1')

  /** One key with few events and one with many, which go on their own. */
  async function fill(store: MysqlStore): Promise<number[]> {
    const long = policy({ ...short, windowSeconds: 3600, keepSeconds: 3600 })
    for (let i = 0; i < 70; i += 1) await hit(store, 'a', long)
    for (let i = 0; i < 3; i += 1) await hit(store, 'b', long, 5)
    await hit(store, 'c', long, 1000)
    await expireAll()
    return [70, 15, 1000]
  }

  const lost = (): Error =>
    Object.assign(new Error('lost'), { code: 'PROTOCOL_CONNECTION_LOST', fatal: true })

  it.each([
    ['before a packet arrives', true, false],
    ['after a packet was answered', true, true],
    ['before a statement arrives', false, false],
    ['after a statement was answered', false, true],
  ])(
    'is neither lost nor counted twice when a sweep loses its connection %s',
    async (_, packets, answered) => {
      const store = use(packets)
      await store.install()
      const expected = await fill(store)
      expect(await totals(store)).toEqual(expected)
      await database.query(`CREATE TABLE keys_then AS SELECT * FROM rate_keys;
CREATE TABLE events_then AS SELECT * FROM rate_events`)
      let nth = 0
      let sent = 0
      do {
        nth += 1
        sent = 0
        await database.query(`UPDATE rate_limit_schema SET sweep_until = 0;
DELETE FROM rate_usage; DELETE FROM rate_keys; DELETE FROM rate_events;
INSERT INTO rate_keys SELECT * FROM keys_then; INSERT INTO rate_events SELECT * FROM events_then`)
        watched.watch = (sql, send, callback) => {
          sent += 1
          const lose = (): void => callback(lost(), undefined)
          if (sent !== nth) send(sql, callback)
          else if (answered) send(sql, lose)
          else lose()
        }
        await store.sweep().catch((error) => expect(error).toBeInstanceOf(StoreError))
        watched.watch = (sql, send, callback) => send(sql, callback)
        expect(await totals(store)).toEqual(expected)
      } while (sent >= nth)
      expect(nth).toBeGreaterThan(10)
      expect(await database.query('SELECT rkey FROM rate_events')).toEqual([])
    },
    60_000,
  )

  it('is neither lost nor counted twice while two processes sweep at once and others hit', async () => {
    const sweepers = [open(), open()]
    const hitters = [open(), open()]
    await Promise.all([...sweepers, ...hitters].map((store) => store.install()))
    let admittedCost = 0
    let working = true
    const sweeping = sweepers.map(async (store) => {
      while (working) {
        // As if the other one's hold on the sweep had ended.
        await database.query('UPDATE rate_limit_schema SET sweep_until = 0')
        await database.query('UPDATE rate_keys SET expires_at = 1 WHERE rkey = ?', [KEYS[0]])
        await store.sweep().catch((error) => expect(error).toMatchObject({ code: 'ERR_STORE_CONFLICT' }))
      }
    })
    await Promise.all(
      hitters.map(async (store) => {
        for (let i = 0; i < 300; i += 1) {
          await hit(store, ['a', 'b'][i % 2] as string, short, 1 + (i % 3))
          admittedCost += 1 + (i % 3)
        }
      }),
    )
    working = false
    await Promise.all(sweeping)
    expect((await totals(open())).reduce((sum, total) => sum + total)).toBe(admittedCost)
    const [moved] = await database.query('SELECT CAST(SUM(cost) AS SIGNED) AS n FROM rate_usage')
    expect(Number(moved?.n)).toBeGreaterThan(100)
  }, 60_000)

  it('is read, kept and swept by index', async () => {
    await fill(open())
    const key = KEYS[0] as string
    const keeping = keepUsage([
      { rkey: `x'${Buffer.from(key).toString('hex')}'`, after: -1, upTo: 1e15, keepMicros: 1 },
    ])
    const reading = keeping.slice(keeping.indexOf('FROM (\n') + 7, keeping.indexOf('\n) AS d'))
    for (const statement of [readUsage(key, 0, 1e15, 60_000_000), reading, expiredUsage(10)]) {
      const plan = await database.query(`EXPLAIN FORMAT = TRADITIONAL ${statement}`)
      const tables = plan.filter(({ table }) => /^rate_/.test(String(table)))
      expect(tables.length).toBeGreaterThan(0)
      for (const step of tables) expect(String(step.key)).toMatch(/^(PRIMARY|ix_rate_usage_expires_at)$/)
    }
  })

  describe('its tables', () => {
    const version = async (): Promise<unknown> =>
      (await database.query('SELECT version FROM rate_limit_schema'))[0]?.version

    it('is added to tables that an earlier version of this package has made', async () => {
      await open().install()
      await database.query('DROP TABLE rate_usage, rate_usage_limits')
      await database.query('UPDATE rate_limit_schema SET version = 1')
      const store = open()
      expect((await hit(store, 'a', short)).denied).toBe(false)
      expect(await totals(store)).toEqual([1, 0, 0])
      expect(await version()).toBe(2)
    })

    it('tells stores that were not told, so that nobody loses usage', async () => {
      const long = policy({ ...short, windowSeconds: 3600 })
      const told = open()
      await hit(told, 'a', long, 3)
      const other = keep(new MysqlStore({ uri: database.uri, sweepSeconds: false, install: false }))
      await hit(other, 'b', long, 5)
      await expireAll()
      expect(await other.sweep()).toMatchObject({ keys: 2 })
      expect(await totals(other)).toEqual([3, 5, 0])
      await hit(other, 'c', long, 7)
      await other.reset([KEYS[2] as string])
      expect(await totals(told)).toEqual([3, 5, 7])

      const ending = keep(
        new MysqlStore({ uri: database.uri, sweepSeconds: false, keepUsageSeconds: { p: 0 } }),
      )
      await hit(ending, 'a', long, 3)
      expect(await database.query('SELECT name FROM rate_usage_limits')).toEqual([])
      await expireAll()
      expect(await other.sweep()).toMatchObject({ keys: 1 })
      expect(await totals(other)).toEqual([3, 5, 7])
    })

    it('is not needed where no usage is kept', async () => {
      await open().install()
      await database.query('DROP TABLE rate_usage, rate_usage_limits')
      const store = keep(new MysqlStore({ uri: database.uri, sweepSeconds: false, install: false }))
      expect((await hit(store, 'a', short)).denied).toBe(false)
      await expireAll()
      expect(await store.sweep()).toMatchObject({ keys: 1 })
    })

    it('is asked for by name where usage is kept and it may not be made', async () => {
      await open().install()
      await database.query('DROP TABLE rate_usage, rate_usage_limits')
      const store = keep(
        new MysqlStore({ uri: database.uri, install: false, keepUsageSeconds: { p: YEAR_SECONDS } }),
      )
      await expect(hit(store, 'a', short)).rejects.toMatchObject({
        code: 'ERR_STORE_SCHEMA',
        message: expect.stringContaining('CREATE TABLE IF NOT EXISTS rate_usage'),
      })
    })

    it('is no reason to fail for a user who may not CREATE and keeps no usage', async () => {
      await open().install()
      await database.query('DROP TABLE rate_usage, rate_usage_limits')
      const user = await createDmlUser(database)
      const plain = keep(new MysqlStore({ uri: user.uri, sweepSeconds: false }))
      expect((await hit(plain, 'a', short)).denied).toBe(false)
      const keeping = keep(
        new MysqlStore({ uri: user.uri, sweepSeconds: false, keepUsageSeconds: { p: YEAR_SECONDS } }),
      )
      await expect(keeping.install()).rejects.toMatchObject({ code: 'ERR_STORE_SCHEMA' })
      await user.drop()
    })
  })
})
