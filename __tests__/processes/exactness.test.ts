import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../lib/stores/sqlite/open-sqlite.js'
import { describeServers } from '../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../servers/test-database.js'
import { type Admission, checkHistory } from './check-history.js'
import type { Setting } from './hit-worker.js'
import { admittedByKey, degradedIn, type HitProcess, runTogether, startProcess } from './run-processes.js'

const PROCESSES = 4
const HOUR = 3600

/** A place where processes can count together. */
interface Place {
  readonly store: Setting['store']
  /** What is stored of the keys. */
  admissions(): Promise<Admission[]>
}

const startProcesses = (setting: Setting): Promise<HitProcess[]> =>
  Promise.all(Array.from({ length: PROCESSES }, () => startProcess(setting)))

const endAll = (processes: readonly HitProcess[]): Promise<unknown> =>
  Promise.all(processes.map((process) => process.end()))

/** The same proofs for every store that processes can share. Each `place()` is empty. */
function exactOverProcesses(place: () => Promise<Place>): void {
  it.each([
    ['one hot key', 1000, 1, 2000],
    ['fifty keys', 20, 50, 1000],
    ['five thousand cold keys', 3, 5000, 7500],
  ])(
    'admit exactly the limit of %s',
    async (_, limit, count, hits) => {
      const { store, admissions } = await place()
      const processes = await startProcesses({ store, limit, windowSeconds: HOUR })
      const outcomes = await runTogether(processes, { first: 0, count, hits, callers: 32 })
      await endAll(processes)

      expect(degradedIn(outcomes)).toEqual([])
      const admitted = admittedByKey(outcomes)
      expect(Object.entries(admitted).filter(([, times]) => times !== limit)).toEqual([])
      expect(Object.keys(admitted)).toHaveLength(count)
      // What was told to callers is what is stored.
      const stored = (await admissions()).reduce((sum, each) => sum + each.hits, 0)
      expect(stored).toBe(limit * count)
    },
    120_000,
  )

  it('admit ten of 300 concurrent hits on a cold key, twenty times over', async () => {
    const { store } = await place()
    const processes = await startProcesses({ store, limit: 10, windowSeconds: HOUR })
    for (let round = 0; round < 20; round += 1) {
      const outcomes = await runTogether(processes, { first: round, count: 1, hits: 75, callers: 75 })
      expect(degradedIn(outcomes)).toEqual([])
      expect(admittedByKey(outcomes)).toEqual({ [`key ${round}`]: 10 })
    }
    await endAll(processes)
  }, 120_000)

  it('hold every window and justify every denial, by the clock of the store', async () => {
    const { store, admissions } = await place()
    const limit = 5
    const windowSeconds = 0.2
    const processes = await startProcesses({ store, limit, windowSeconds, retainSeconds: HOUR })
    const outcomes = await runTogether(processes, {
      first: 0,
      count: 10,
      hits: 1e9,
      millis: 2500,
      callers: 16,
    })
    await endAll(processes)

    expect(degradedIn(outcomes)).toEqual([])
    const history = await admissions()
    const denials = outcomes.flatMap((outcome) => outcome.denials)
    expect(checkHistory(history, denials, limit, windowSeconds * 1e6)).toEqual([])
    // There was something to check.
    expect(history.length).toBeGreaterThan(50)
    expect(denials.length).toBeGreaterThan(50)
  }, 120_000)
}

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
      store: { uri: database.uri },
      admissions: async () => {
        const rows = await database.query(
          'SELECT CONVERT(rkey USING utf8mb4) AS `key`, ts, hits FROM rate_events',
        )
        return rows as unknown as Admission[]
      },
    }
  })

  it('stay exact, and keep nobody waiting, when one of them is killed in the middle', async () => {
    const database = await create()
    const limit = 500
    const timeoutMs = 5000
    const store = { uri: database.uri }
    const processes = await startProcesses({ store, limit, windowSeconds: HOUR, timeoutMs })
    const runs = processes.map((process, begin) =>
      process.run({ first: 0, count: 20, begin, hits: 4000, callers: 16 }),
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
      store: { filename },
      admissions: async () => {
        const database = await openSqlite(filename)
        const rows = database.prepare('SELECT CAST(rkey AS TEXT) AS key, ts, hits FROM rate_events').all()
        database.close()
        return rows as Admission[]
      },
    }
  })
})
