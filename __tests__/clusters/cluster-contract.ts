import { Limiter, MysqlStore } from '../../lib/index.js'
import { endAll, exactOverProcesses, PROCESSES, startProcesses } from '../processes/exact-over-processes.js'
import { machineMicros } from '../processes/machine-clock.js'
import { readAdmissions } from '../processes/read-admissions.js'
import { admittedByKey, degradedIn } from '../processes/run-processes.js'
import type { PrivateServer } from '../servers/server.js'
import type { TestDatabase } from '../servers/test-database.js'
import { type Cluster, createClusterDatabase, runOn, type StartCluster, untilTrue, uriOn } from './cluster.js'

/** What holds on a cluster whose nodes all take writes. */
export function clusterContract(start: StartCluster): void {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await start()
  }, 240_000)
  afterAll(() => cluster?.stop(), 60_000)

  const databases: TestDatabase[] = []
  afterEach(() => Promise.all(databases.splice(0).map((database) => database.drop())))
  const create = async (): Promise<TestDatabase> => {
    const database = await createClusterDatabase(cluster.nodes)
    databases.push(database)
    return database
  }

  describe('writers on all three nodes', () => {
    exactOverProcesses(async () => {
      const database = await create()
      return {
        stores: cluster.nodes.map((node) => ({ uri: uriOn(database, node) })),
        admissions: () => readAdmissions(database, cluster.catchUp),
      }
    })
  })

  /** An address with all nodes, from one of them on. */
  const uriFrom = (database: TestDatabase, first: number): string => {
    const { host } = new URL(database.uri)
    const hosts = cluster.nodes.map((_, i) => `127.0.0.1:${cluster.nodes[(first + i) % 3]?.port}`)
    return database.uri.replace(host, hosts.join())
  }

  it('a store leaves a node that refuses writes, within two seconds', async () => {
    const database = await create()
    const store = new MysqlStore({ uri: uriFrom(database, 0), sweepSeconds: false })
    const logger = { error: () => {} }
    const limiter = new Limiter({ store, limit: 1e6, windowSeconds: 3600, timeoutMs: 500, logger })
    const [node] = cluster.nodes as [PrivateServer]
    await store.install()
    expect((await limiter.hit('a')).outcome).toBe('allowed')

    await cluster.isolate(node)
    await expect(runOn(node, [`DELETE FROM ${database.name}.rate_keys`])).rejects.toThrow()
    const begin = performance.now()
    while ((await limiter.hit('a')).outcome !== 'allowed');
    expect(performance.now() - begin).toBeLessThan(2000)

    await cluster.rejoin(node)
    expect((await limiter.hit('a')).outcome).toBe('allowed')
    await store.close()
  }, 120_000)

  it('stay exact when one of them is killed, and its processes go on with others within two seconds', async () => {
    const database = await create()
    const [first, , last] = cluster.nodes as [PrivateServer, PrivateServer, PrivateServer]
    const limit = 6
    const count = 200
    const stores = cluster.nodes.map((_, i) => ({ uri: uriFrom(database, i) }))
    const processes = await startProcesses(stores, { limit, windowSeconds: 3600 })
    const runs = processes.map((process, i) =>
      process.run({ traffic: { first: 0, count, begin: i * 50 }, hits: 4000, callers: 8 }),
    )
    await untilTrue(first, `SELECT COUNT(*) > 20 FROM ${database.name}.rate_events`)
    const killed = machineMicros()
    await last.signal('SIGKILL')
    const outcomes = (await Promise.all(runs)).filter((outcome) => outcome !== null)
    await endAll(processes)

    expect(outcomes).toHaveLength(PROCESSES)
    // A COMMIT whose answer was lost with the node: counted, and told as undecided.
    const unknown = degradedIn(outcomes)
    expect(new Set(unknown)).toEqual(new Set(unknown.length === 0 ? [] : ['ERR_STORE_CONNECTION']))
    const told = admittedByKey(outcomes)
    const stored = new Map<string, number>()
    for (const { key, hits } of await readAdmissions(database, cluster.catchUp)) {
      stored.set(key, (stored.get(key) ?? 0) + hits)
    }
    expect([...stored.values()]).toEqual(new Array(count).fill(limit))
    expect(Object.values(told).filter((times) => times > limit)).toEqual([])
    const lost = count * limit - Object.values(told).reduce((sum, times) => sum + times, 0)
    expect(lost).toBeLessThanOrEqual(unknown.length)
    for (const { sightings } of outcomes) {
      const admitted = sightings.filter(({ outcome }) => outcome === 'admitted')
      const next = admitted.find(({ answered }) => answered > killed + 100_000)?.answered
      expect(((next ?? Number.POSITIVE_INFINITY) - killed) / 1000).toBeLessThan(2000)
    }
  }, 120_000)
}
