import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { MysqlStore, StoreError } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createDmlUser } from '../../servers/dml-user.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { admitted, charge, policy } from '../policies.js'

const FILE = 'sql/mysql/001-rate-limit.sql'
const TABLES = ['rate_events', 'rate_keys', 'rate_limit_schema', 'rate_usage', 'rate_usage_limits']

test('the schema files in the package are those of sql/', () => {
  const generated = execFileSync('node', ['scripts/generate-schema.mjs', '--print'], { encoding: 'utf8' })
  expect(readFileSync('lib/stores/schema.ts', 'utf8')).toBe(generated)
})

describeServers('installing', (server) => {
  let database: TestDatabase
  const stores: MysqlStore[] = []
  const open = (options: { install?: boolean; uri?: string } = {}): MysqlStore => {
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false, ...options })
    stores.push(store)
    return store
  }
  const tables = async (): Promise<string[]> => {
    const rows = await database.query(
      'SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()',
    )
    return rows.map(({ name }) => String(name)).sort()
  }
  const failure = async (promise: Promise<unknown>): Promise<StoreError> => {
    const error: unknown = await promise.then(
      () => null,
      (reason) => reason,
    )
    expect(error).toBeInstanceOf(StoreError)
    return error as StoreError
  }

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()))
    await database.drop()
  })

  it('creates the tables, and again changes nothing', async () => {
    const store = open()
    await store.install()
    await store.install()
    expect(await tables()).toEqual(TABLES)
  })

  it('works from twenty processes at once', async () => {
    await Promise.all(Array.from({ length: 20 }, () => open().install()))
    expect(await tables()).toEqual(TABLES)
    const rows = await database.query('SELECT version FROM rate_limit_schema')
    expect(rows).toEqual([{ version: 2 }])
  })

  it('happens by itself before the first decision', async () => {
    expect(await admitted(open(), 2, 'a', policy({ limit: 1 }))).toEqual([true, false])
  })

  it('accepts what a DBA made by hand from the schema file', async () => {
    await database.query(readFileSync(FILE, 'utf8'))
    expect(await admitted(open({ install: false }), 2, 'a', policy({ limit: 1 }))).toEqual([true, false])
  })

  it('names the missing tables and the file that makes them when it may not install', async () => {
    const error = await failure(admitted(open({ install: false }), 1, 'a', policy()))
    expect(error.code).toBe('ERR_STORE_SCHEMA')
    expect(error.message).toContain('table rate_keys is missing')
    expect(error.message).toContain(FILE)
    expect(await tables()).toEqual([])
  })

  it.each([
    [
      'an older table without a column',
      'ALTER TABLE rate_keys DROP COLUMN span',
      'column rate_keys.span is missing',
    ],
    [
      'a column of another type (hazard 32)',
      'ALTER TABLE rate_events MODIFY COLUMN ts INT NOT NULL',
      'column rate_events.ts is int, not bigint',
    ],
    [
      'a key column that is too short (hazard 38)',
      'ALTER TABLE rate_keys MODIFY COLUMN rkey VARBINARY(64) NOT NULL',
      'column rate_keys.rkey is varbinary(64), not varbinary(120)',
    ],
    [
      'a key column with a collation (hazard 34)',
      'ALTER TABLE rate_events MODIFY COLUMN rkey VARCHAR(120) NOT NULL',
      'column rate_events.rkey is varchar(120), not varbinary(120)',
    ],
    [
      'a missing index (hazard 18)',
      'ALTER TABLE rate_keys DROP KEY ix_rate_keys_expires_at',
      'key ix_rate_keys_expires_at of rate_keys is missing',
    ],
    [
      'a primary key on other columns (hazard 18)',
      'ALTER TABLE rate_events DROP PRIMARY KEY, ADD PRIMARY KEY (ts, rkey)',
      'key PRIMARY of rate_events is on (ts, rkey), not (rkey, ts)',
    ],
    [
      'tables without transactions',
      'ALTER TABLE rate_events ENGINE = MyISAM',
      'table rate_events has engine myisam',
    ],
  ])('names %s, and the statement that mends it', async (_, damage, what) => {
    await open().install()
    await database.query(damage)
    const error = await failure(open().install())
    expect(error.code).toBe('ERR_STORE_SCHEMA')
    expect(error.message).toContain(what)

    const statement = error.message.slice(error.message.indexOf('ALTER TABLE'))
    await database.query(statement)
    expect(await admitted(open(), 2, 'a', policy({ limit: 1 }))).toEqual([true, false])
  })

  it('needs no more than SELECT, INSERT, UPDATE and DELETE once the tables are there (hazard 53)', async () => {
    await open().install()
    const user = await createDmlUser(database)
    const store = open({ uri: user.uri })
    expect(await admitted(store, 2, 'a', policy({ limit: 1 }))).toEqual([true, false])
    await store.reset(['p:a'])
    await store.sweep()
    // A store that never looks for a right to CREATE works as well, with everything it does.
    const careful = open({ uri: user.uri, install: false })
    expect(await admitted(careful, 2, 'b', policy({ limit: 1 }))).toEqual([true, false])
    const never = new AbortController().signal
    await careful.probe(never)
    await careful.block(charge('b', policy()), 1e6, never)
    await careful.refund([{ ...charge('b', policy()), cost: 1, at: 0 }], never)
    await careful.reset(['p:b'])
    await careful.sweep()

    await database.query('DROP TABLE rate_events')
    const error = await failure(open({ uri: user.uri }).install())
    expect(error.code).toBe('ERR_STORE_SCHEMA')
    expect(error.message).toContain('CREATE TABLE IF NOT EXISTS rate_events')
    await user.drop()
  })

  it('tells a wrong password from a dead database, and shows neither', async () => {
    const uri = new URL(database.uri)
    uri.username = 'nobody'
    uri.password = 'hunter2'
    const error = await failure(open({ uri: uri.href }).install())
    expect(error.code).toBe('ERR_STORE_CONFIG')
    expect(error.message).not.toMatch(/hunter2|nobody/)
    const dead = await failure(open({ uri: 'mysql://root@127.0.0.1:1/none' }).install())
    expect(dead.code).toBe('ERR_STORE_CONNECTION')
  })

  it('makes tables again that were dropped while it ran', async () => {
    const store = open()
    await admitted(store, 1, 'a', policy())
    await database.query('DROP TABLE rate_keys, rate_events, rate_limit_schema')
    const error = await failure(admitted(store, 1, 'a', policy()))
    expect(error.code).toBe('ERR_STORE_SCHEMA')
    expect(await admitted(store, 4, 'a', policy())).toEqual([true, true, true, false])
  })

  it('makes the row of the sweep that a hand-made schema may lack', async () => {
    const store = open()
    await store.install()
    await database.query('DELETE FROM rate_limit_schema')
    expect((await store.sweep()).ran).toBe(true)
  })
})
