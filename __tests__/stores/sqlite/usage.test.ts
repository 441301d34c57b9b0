import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteStore } from '../../../lib/index.js'
import { openSqlite, type SqliteDatabase } from '../../../lib/stores/sqlite/open-sqlite.js'
import { charge, hit, policy } from '../policies.js'
import { START } from '../subject.js'
import { totalOf } from '../usage-contract.js'

describe('usage in SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
  const filename = join(folder, 'limits.sqlite')
  const key = charge('a', policy()).key
  let now = START
  let database: SqliteDatabase
  const stores: SqliteStore[] = []
  const open = (
    options: { install?: boolean; keepUsageSeconds?: Record<string, number> } = {},
  ): SqliteStore => {
    const store = new SqliteStore({ filename, sweepSeconds: false, clock: () => now, ...options })
    stores.push(store)
    return store
  }
  const keeping = { keepUsageSeconds: { p: 31_536_000 } }

  beforeEach(async () => {
    now = START
    await open().install()
    database = await openSqlite(filename)
  })
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()))
    database.close()
    rmSync(filename, { force: true })
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it.each(['rate_events', 'rate_keys'])(
    'is neither lost nor counted twice when a sweep fails at deleting from %s',
    async (table) => {
      const store = open(keeping)
      await hit(store, 'a', policy(), 2)
      now += 3_600_000
      database.exec(
        `CREATE TRIGGER broken BEFORE DELETE ON ${table} BEGIN SELECT RAISE(ABORT, 'broken'); END`,
      )
      await expect(store.sweep()).rejects.toMatchObject({ code: 'ERR_STORE_FAILED' })
      expect(await totalOf(store, key)).toBe(2)
      database.exec('DROP TRIGGER broken')
      now += 60_000
      expect(await store.sweep()).toMatchObject({ keys: 1, events: 1 })
      expect(await totalOf(store, key)).toBe(2)
    },
  )

  it('is read by two others while one deletes, and always whole', async () => {
    const [writer, reader] = [open(keeping), open(keeping)]
    for (let i = 1; i <= 30; i += 1) {
      await hit(writer, 'a', policy(), 2)
      now += 3_600_000
      const [total] = await Promise.all([totalOf(reader, key), writer.sweep()])
      expect(total).toBe(2 * i)
      expect(await totalOf(reader, key)).toBe(2 * i)
    }
  })

  it('has its table added to a file that an earlier version of this package has made', async () => {
    database.exec(
      'DROP TABLE rate_usage; DROP TABLE rate_usage_limits; UPDATE rate_limit_schema SET version = 1',
    )
    const store = open(keeping)
    await hit(store, 'a', policy())
    expect(await totalOf(store, key)).toBe(1)
    expect(database.prepare('SELECT version FROM rate_limit_schema').get()).toEqual({ version: 2 })
  })

  it('is kept by stores that were not told, as the file knows it', async () => {
    await hit(open(keeping), 'a', policy(), 2)
    const other = open()
    now += 3_600_000
    expect(await other.sweep()).toMatchObject({ keys: 1 })
    await hit(other, 'a', policy(), 3)
    await other.reset([key])
    expect(await totalOf(other, key)).toBe(5)
    await open({ keepUsageSeconds: { p: 0 } }).install()
    await hit(other, 'a', policy())
    now += 3_600_000
    await other.sweep()
    expect(await totalOf(other, key)).toBe(5)
    expect(database.prepare('SELECT name FROM rate_usage_limits').all()).toEqual([])
  })

  it('needs its tables only where it is kept', async () => {
    database.exec('DROP TABLE rate_usage; DROP TABLE rate_usage_limits')
    const store = open({ install: false })
    await hit(store, 'a', policy())
    now += 3_600_000
    expect(await store.sweep()).toMatchObject({ keys: 1 })
    await expect(hit(open({ install: false, ...keeping }), 'a', policy())).rejects.toMatchObject({
      code: 'ERR_STORE_SCHEMA',
      message: expect.stringContaining('rate_usage'),
    })
  })
})
