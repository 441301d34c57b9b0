import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { type CommandCounter, countCommands } from './command-counter.js'

/** What some hits cost the server. Counts, which depend on no machine. */
interface Cost {
  trips: number
  statements: number
  commits: number
  inserted: number
  updated: number
  deleted: number
}

describeServers('what a thousand hits cost', (server) => {
  let database: TestDatabase
  let counter: CommandCounter
  let store: MysqlStore
  const limiter = (limit: number, algorithm: 'sliding-window' | 'fixed-window' = 'sliding-window'): Limiter =>
    new Limiter({
      store,
      name: `${algorithm}-${limit}`,
      limit,
      windowSeconds: 600,
      algorithm,
      timeoutMs: 60_000,
    })

  beforeEach(async () => {
    database = await createTestDatabase(server.kind)
    counter = await countCommands(database.uri)
    store = new MysqlStore({ uri: counter.uri, sweepSeconds: false })
    await store.install()
  })
  afterEach(async () => {
    await store.close()
    await counter.stop()
    await database.drop()
  })

  /** Changes and deletions of the whole server: nothing else uses it while this file runs. */
  const [UPDATED, DELETED] =
    server.kind === 'mysql'
      ? ['Innodb_rows_updated', 'Innodb_rows_deleted']
      : ['Handler_update', 'Handler_delete']
  const rowsWritten = async (): Promise<Pick<Cost, 'inserted' | 'updated' | 'deleted'>> => {
    const rows = await database.query(
      `SHOW GLOBAL STATUS WHERE Variable_name IN ('${UPDATED}', '${DELETED}')`,
    )
    const counts = new Map(rows.map(({ Variable_name, Value }) => [String(Variable_name), Number(Value)]))
    const [events] = await database.query('SELECT COUNT(*) AS n FROM rate_events')
    return {
      inserted: Number(events?.n),
      updated: counts.get(UPDATED as string) as number,
      deleted: counts.get(DELETED as string) as number,
    }
  }
  const costOf = async (work: () => Promise<unknown>): Promise<Cost> => {
    const before = await rowsWritten()
    counter.take()
    await work()
    const commands = counter.takeStatements()
    const after = await rowsWritten()
    const statements = commands.flat()
    return {
      trips: commands.length,
      statements: statements.length,
      commits: statements.filter((sql) => sql === 'COMMIT').length,
      inserted: after.inserted - before.inserted,
      updated: after.updated - before.updated,
      deleted: after.deleted - before.deleted,
    }
  }
  /** Waves of concurrent hits: each wave is one batch. */
  const waves = async (by: Limiter, times: number, keys: readonly string[]): Promise<void> => {
    for (let i = 0; i < times; i += 1) await Promise.all(keys.map((key) => by.hit(key)))
  }
  const hundred = Array.from({ length: 100 }, (_, i) => `key ${i}`)

  it('a hundred at a time on a hundred keys: one round trip and one commit a batch, once they are known', async () => {
    const by = limiter(1_000_000)
    expect(await costOf(() => waves(by, 1, hundred))).toMatchObject({ trips: 2, statements: 6, commits: 1 })
    expect(await costOf(() => waves(by, 10, hundred))).toEqual({
      trips: 10,
      statements: 40,
      commits: 10,
      inserted: 1000,
      updated: 1000,
      deleted: 0,
    })
  })

  it('a hundred at a time on one key: one round trip, and one row for all of them', async () => {
    const by = limiter(1_000_000)
    await by.hit('hot')
    expect(await costOf(() => waves(by, 10, Array(100).fill('hot')))).toEqual({
      trips: 10,
      statements: 40,
      commits: 10,
      inserted: 10,
      updated: 10,
      deleted: 0,
    })
  })

  it('one after the other: one round trip each', async () => {
    const by = limiter(1_000_000)
    await by.hit('a')
    expect(await costOf(() => waves(by, 1000, ['a']))).toEqual({
      trips: 1000,
      statements: 4000,
      commits: 1000,
      inserted: 1000,
      updated: 1000,
      deleted: 0,
    })
  })

  it('one after the other on a fixed window: no events', async () => {
    const by = limiter(1_000_000, 'fixed-window')
    await by.hit('a')
    expect(await costOf(() => waves(by, 1000, ['a']))).toMatchObject({
      trips: 1000,
      inserted: 0,
      updated: 1000,
    })
  })

  it('one after the other with leases of a hundred: two round trips for a hundred hits', async () => {
    const by = new Limiter({ store, name: 'leased', limit: 1_000_000, windowSeconds: 600, lease: 100 })
    const cost = await costOf(() => waves(by, 1000, ['a']))
    expect(cost.commits).toBeGreaterThanOrEqual(10)
    // A lease lives for a second: on a machine that stands still it ends before it is used up.
    expect(cost.commits).toBeLessThanOrEqual(15)
    expect(cost.trips).toBeLessThanOrEqual(2 * cost.commits)
    expect(cost.inserted).toBeLessThanOrEqual(15)
  })

  it('over the limit: one look, and nothing written', async () => {
    const by = limiter(5)
    await waves(by, 5, ['a'])
    const cost = await costOf(() => waves(by, 1000, ['a']))
    // A denial is remembered for a second at the most.
    expect(cost.trips).toBeLessThanOrEqual(2 * 20)
    expect(cost).toMatchObject({ commits: 0, inserted: 0, updated: 0, deleted: 0 })
  })

  it('from however many callers: one connection for decisions, one beside it', async () => {
    const by = limiter(1_000_000)
    await Promise.all(Array.from({ length: 1000 }, (_, i) => by.hit(`key ${i % 300}`)))
    await Promise.all(hundred.map((key) => by.peek(key)))
    expect(counter.connections).toBeLessThanOrEqual(2)
  })
})
