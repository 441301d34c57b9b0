import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../lib/stores/sqlite/open-sqlite.js'
import { describeServers } from '../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../servers/test-database.js'
import type { Admission } from './check-history.js'
import { endAll, exactOverProcesses, PROCESSES, startProcesses } from './exact-over-processes.js'
import { readAdmissions } from './read-admissions.js'
import { admittedByKey, degradedIn, runTogether } from './run-processes.js'

describeServers('four processes on one database', (server) => {
  const databases: TestDatabase[] = []
  afterAll(() => Promise.all(databases.map((database) => database.drop())))

  const create = async (): Promise<TestDatabase> => {
    const database = await createTestDatabase(server.kind)
    databases.push(database)
    return database
  }

  exactOverProcesses(async () => {
    const database = await create()
    return {
      stores: [{ uri: database.uri }],
      admissions: () => readAdmissions(database),
    }
  })

  it('admit exactly the limit when two of them send each statement on its own, as for a proxy', async () => {
    const database = await create()
    const limit = 20
    const stores = [{ uri: database.uri }, { uri: database.uri, multipleStatements: false }]
    const processes = await startProcesses(stores, { limit, windowSeconds: 3600 })
    const outcomes = await runTogether(processes, { first: 0, count: 50, hits: 1000, callers: 32 })
    await endAll(processes)
    expect(degradedIn(outcomes)).toEqual([])
    expect(Object.values(admittedByKey(outcomes))).toEqual(new Array(50).fill(limit))
    for (const { counts } of outcomes) expect(counts.admitted).toBeGreaterThan(0)
  }, 120_000)

  it('stay exact, and keep nobody waiting, when one of them is killed in the middle', async () => {
    const database = await create()
    const limit = 500
    const timeoutMs = 5000
    const stores = [{ uri: database.uri }]
    const processes = await startProcesses(stores, { limit, windowSeconds: 3600, timeoutMs })
    const runs = processes.map((process, begin) =>
      process.run({ traffic: { first: 0, count: 20, begin }, hits: 4000, callers: 16 }),
    )
    await waitForEvents(database, 100)
    processes[0]?.child.kill('SIGKILL')
    const [killed, ...rest] = await Promise.all(runs)
    await endAll(processes)

    expect(killed).toBeNull()
    const survivors = rest.filter((outcome) => outcome !== null)
    expect(survivors).toHaveLength(PROCESSES - 1)
    expect(degradedIn(survivors)).toEqual([])
    for (const { slowestMs } of survivors) expect(slowestMs).toBeLessThan(timeoutMs)
    // Each key had more hits than its limit even without the killed process.
    const stored = await database.query('SELECT SUM(hits) AS hits FROM rate_events GROUP BY rkey')
    expect(stored.map(({ hits }) => Number(hits))).toEqual(new Array(20).fill(limit))
  }, 120_000)
})

async function waitForEvents(database: TestDatabase, count: number): Promise<void> {
  for (;;) {
    const [row] = await database.query('SELECT COUNT(*) AS n FROM rate_events')
    if (row?.n >= count) return
  }
}

describe('four processes on one SQLite file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
  let files = 0
  afterAll(() => rmSync(folder, { recursive: true }))

  exactOverProcesses(async () => {
    files += 1
    const filename = join(folder, `${files}.sqlite`)
    return {
      stores: [{ filename }],
      admissions: async () => {
        const database = await openSqlite(filename)
        const rows = database.prepare('SELECT CAST(rkey AS TEXT) AS key, ts, hits FROM rate_events').all()
        database.close()
        return rows as Admission[]
      },
    }
  })
})
