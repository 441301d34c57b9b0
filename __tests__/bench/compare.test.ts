import { ours } from '../../bench/contenders/ours.js'
import { flexibleMysql } from '../../bench/contenders/rate-limiter-flexible.js'
import { threeStatements } from '../../bench/contenders/three-statements.js'
import { hitAcrossBoundary } from '../../bench/exactness/across-boundary.js'
import { compare } from '../../bench/load/compare.js'
import { countWork } from '../../bench/load/count-work.js'
import { denyMany } from '../../bench/load/deny-many.js'
import { entryTable, RATE } from '../../bench/load/entry-table.js'
import { startProxy } from '../../bench/proxy/start-proxy.js'
import type { Context, Servers } from '../../bench/section.js'
import { describeServers } from '../servers/describe-servers.js'

// The benchmark in small, so that it is there when it is wanted: what it does, not how fast.
describeServers('the benchmark', (server) => {
  const { kind } = server
  const servers = { mysql: server, mariadb: server } as unknown as Servers
  // For machines under load: what is slow is no failure here.
  const us = ours(kind, 'sliding-window', { timeoutMs: 20_000 })
  const steps: string[] = []
  const context: Context = { quick: true, servers, step: (label) => steps.push(label) }

  test('gives everyone the same work and checks how exact they are', async () => {
    const contenders = [us, flexibleMysql(kind), threeStatements(kind)]
    const rule = { limit: 1_000_000, windowSeconds: 60 }
    const [entries = []] = await compare(
      context,
      { contenders, rule, rounds: 2, millis: 60, warmUpMillis: 30 },
      [{ label: 'small', callers: 8, keys: 20 }],
    )
    expect(entries.map(({ contender }) => contender)).toEqual(contenders)
    for (const { rounds, admitted } of entries) {
      expect(rounds.map(({ errors, denied }) => errors + denied)).toEqual([0, 0])
      expect(admitted).toBeGreaterThanOrEqual(rounds.reduce((sum, { hits }) => sum + hits, 0))
    }
    expect(entries.slice(0, 2).map(({ coldKeys }) => coldKeys.admitted)).toEqual([[100], [100]])
    expect(steps).toEqual(['small, round 1 of 2', 'small, round 2 of 2'])
    expect(entryTable('small', entries, RATE).rows).toHaveLength(3)
  })

  test('sees a sliding window kept across the end of a second', async () => {
    const seen = await hitAcrossBoundary(us, servers)
    expect(seen).toMatchObject({ limit: 20, tooEarly: 0, errors: 0 })
    expect(seen.most).toBeGreaterThan(0)
    expect(seen.most).toBeLessThanOrEqual(20)
  })

  test('counts round trips, and denies many keys', async () => {
    const load = { callers: 1, keys: 3, prefix: 'few', warmUp: 5, hits: 5 }
    const proxy = await startProxy(server.uri, 0.5)
    const [work] = await countWork(us, servers, proxy, [load]).finally(proxy.stop)
    expect(work?.roundTrips).toBeGreaterThan(0)
    expect(work?.Questions).toBeGreaterThanOrEqual(work?.commands as number)
    // Of the line-up, and without a deadline: what is slow is no failure here either.
    const [stage] = await denyMany(context, flexibleMysql(kind), [300])
    expect(stage).toMatchObject({ keys: 300, admitted: { allowed: 300 }, denied: { denied: 300 } })
  })
})
