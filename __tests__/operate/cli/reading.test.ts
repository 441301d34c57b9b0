import { createConnection, createPool, type RowDataPacket } from 'mysql2/promise'
import { Limiter, MysqlStore } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { countCommands } from '../../stores/mysql/command-counter.js'
import { runCli, runJson } from './run-cli.js'

jest.setTimeout(120_000)

const digits = Array.from({ length: 10 }, (_, n) => `SELECT ${n} AS n`).join(' UNION ALL ')

describeServers('reading', ({ kind }) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(kind)
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    for (const name of ['global', 'login']) {
      const limiter = new Limiter({ store, name, limit: 5, windowSeconds: 3600, timeoutMs: 20_000 })
      await limiter.hit('alice')
    }
    await store.close()
    // 10,000 keys of each of two limiters more, which still count for an hour.
    await database.query(`INSERT INTO rate_keys (rkey, total, last_ts, memo_window, memo_ts, expires_at)
SELECT CONCAT(l.name, ':', a.n, b.n, c.n, d.n), 1, x.now, 3600000000, x.now, x.now + 3660000000
FROM (SELECT 'bulk' AS name UNION ALL SELECT 'mass') AS l,
  (${digits}) AS a, (${digits}) AS b, (${digits}) AS c, (${digits}) AS d,
  (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now) AS x`)
  })
  afterAll(() => database.drop())

  it('waits for no lock that others hold, at SERIALIZABLE and without autocommit too', async () => {
    const other = await createConnection(database.uri)
    await other.query('START TRANSACTION')
    await other.query('SELECT * FROM rate_keys FOR UPDATE')
    await other.query('SELECT * FROM rate_events FOR UPDATE')
    const [[before]] = await other.query<RowDataPacket[]>('SELECT @@GLOBAL.autocommit AS autocommit')
    await other.query('SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE')
    await other.query('SET GLOBAL autocommit = 0')
    try {
      const options = { databaseUrl: database.uri }
      expect((await runJson(['status', 'alice'], options)).json.keys).toHaveLength(2)
      const top = await runJson(['top', '--scan', '30000'], options)
      expect(top.json).toMatchObject({ scanned: 20_002, isComplete: true })
      // Nor does it hold any: the doctor times decisions, which would wait.
      const { json } = await runJson(['doctor', '--no-write'], options)
      expect(json.findings).toContainEqual(expect.objectContaining({ check: 'sweep', level: 'ok' }))
    } finally {
      await other.query(`SET GLOBAL autocommit = ${before?.autocommit}`)
      await other.query('SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ')
      await other.end()
    }
  })

  it('finds a key among 20,000 with a few seeks, and ranks them by index with a bound', async () => {
    const relay = await countCommands(database.uri)
    const options = { databaseUrl: relay.uri }
    const { json } = await runJson(['status', 'alice'], options)
    expect(json.keys).toHaveLength(2)
    const seeks = relay.takeStatements().flat()
    // One beginning for each of the four limiters, and one to see that there is no more.
    expect(seeks.filter((sql) => sql.includes('the first key from here on'))).toHaveLength(5)
    await runJson(['top', '--scan', '12000'], options)
    await runJson(['top', '--name', 'mass', '--scan', '12000'], options)
    const statements = relay.takeStatements().flat()
    await relay.stop()

    const pool = createPool({ uri: database.uri })
    const explained = [...seeks, ...statements]
      // Newer servers are sent two bytes in front of a statement.
      .map((sql) => sql.slice(sql.search(/--|\w/)))
      .filter((sql) => sql.includes('FROM rate_keys'))
    expect(explained.length).toBeGreaterThan(10)
    for (const sql of explained) {
      const [plan] = await pool.query<RowDataPacket[]>(`EXPLAIN FORMAT=TRADITIONAL ${sql}`)
      expect(plan[0]).toMatchObject({
        key: sql.includes('FORCE INDEX') ? 'ix_rate_keys_expires_at' : 'PRIMARY',
        type: expect.stringMatching(/^(range|const)$/),
      })
      expect(String(plan[0]?.Extra)).not.toMatch(/filesort|temporary/)
      expect(sql).toMatch(/LIMIT \d+$|IN \(/)
    }
    await pool.end()
  })

  it('of many limiters takes the first thousand, and says so', async () => {
    await database.query(`INSERT INTO rate_keys (rkey, total)
SELECT CONCAT('tenant-', a.n, b.n, c.n, d.n, ':bob'), 1
FROM (${digits}) AS a, (${digits}) AS b, (${digits}) AS c, (${digits}) AS d
WHERE a.n = 0 OR b.n = 0`)
    const options = { databaseUrl: database.uri }
    const all = await runJson(['status', 'bob'], options)
    expect(all.json.isComplete).toBe(false)
    expect(all.json.keys.length).toBeGreaterThan(900)
    expect((await runCli(['status', 'bob'], options)).stdout).toMatch(/more limiters than were looked at/)
    const one = await runJson(['status', 'bob', '--name', 'tenant-9099'], options)
    expect(one.json).toMatchObject({ isComplete: true, keys: [{ storedKey: 'tenant-9099:bob' }] })
  })

  it('tells a sweep that another process holds', async () => {
    await database.query(
      `UPDATE rate_limit_schema SET sweep_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 30000000`,
    )
    const { code, stdout } = await runCli(['sweep'], { databaseUrl: database.uri })
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^Another process is sweeping/),
    })
    expect((await runJson(['sweep'], { databaseUrl: database.uri })).json).toMatchObject({ ran: false })
  })
})
