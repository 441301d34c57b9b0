import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Limiter, MemoryStore } from 'express-sql-rate-limit'
import { BatchRecord } from '../../../lib/operate/dashboard/batch-record.js'
import { DecisionSeries, SERIES_SECONDS } from '../../../lib/operate/dashboard/decision-series.js'
import { HeavyKeys } from '../../../lib/operate/dashboard/heavy-keys.js'
import { LimitRecord } from '../../../lib/operate/dashboard/limit-record.js'
import { RecentKeys } from '../../../lib/operate/dashboard/recent-keys.js'
import { Recorder } from '../../../lib/operate/dashboard/recorder.js'

const MINUTE = 60_000
const NOW = 1_800_000_000_000

describe('the counts of a limit by second', () => {
  const SECOND = NOW / 1000

  test('are those of the last fifteen minutes, and zero elsewhere', () => {
    const series = new DecisionSeries()
    series.count('allowed', SECOND)
    series.count('allowed', SECOND)
    series.count('denied', SECOND + 2)
    series.count('degraded', SECOND + 2)
    expect(series.between(SECOND - 1, SECOND + 3)).toEqual([0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0])
    series.count('allowed', SECOND + SERIES_SECONDS)
    expect(series.between(SECOND, SECOND)).toEqual([0, 0, 0])
    expect(series.between(SECOND + 2, SECOND + 2)).toEqual([0, 1, 1])
    expect(series.between(SECOND + SERIES_SECONDS, SECOND + SERIES_SECONDS)).toEqual([1, 0, 0])
  })

  test('stay right when a clock is set back, by a little or by much', () => {
    const series = new DecisionSeries()
    series.count('allowed', SECOND)
    series.count('denied', SECOND - 10)
    expect(series.between(SECOND - 10, SECOND - 10)).toEqual([0, 1, 0])
    series.count('denied', SECOND - 100_000)
    expect(series.between(SECOND - 100_000, SECOND - 100_000)).toEqual([0, 1, 0])
    expect(series.between(SECOND, SECOND)).toEqual([0, 0, 0])
  })
})

describe('the heaviest keys', () => {
  test('are exact while there are few', () => {
    const keys = new HeavyKeys()
    for (let i = 0; i < 100; i += 1) for (let hits = 0; hits <= i; hits += 1) keys.count(`key ${i}`)
    expect([...keys.all()].map(({ hits }) => hits)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1))
  })

  test('are found among a million others, in bounded memory', () => {
    const keys = new HeavyKeys()
    let largest = 0
    for (let i = 0; i < 1_000_000; i += 1) {
      keys.count(`flood ${i}`)
      if (i % 50 === 0) keys.count('heavy')
      if (i % 1000 === 0) largest = Math.max(largest, [...keys.all()].length)
    }
    expect(largest).toBeLessThanOrEqual(128)
    const heavy = [...keys.all()].find(({ key }) => key === 'heavy')
    expect(heavy?.hits).toBe(20_000)
  })

  test('one that begins in the middle of a flood is found, too', () => {
    const keys = new HeavyKeys()
    for (let i = 0; i < 100_000; i += 1) {
      keys.count(`flood ${i}`)
      if (i > 50_000 && i % 10 === 0) keys.count('late')
    }
    const late = [...keys.all()].find(({ key }) => key === 'late')
    expect(late?.hits).toBeGreaterThan(4_000)
    expect(late?.hits).toBeLessThanOrEqual(5_000)
  })

  test('are those of the last five minutes', () => {
    const keys = new RecentKeys()
    keys.count('old', NOW)
    for (let i = 0; i < 3; i += 1) keys.count('a', NOW + i * MINUTE)
    keys.count('b', NOW + 4 * MINUTE)
    const hits = (now: number) => keys.top(10, now).map(({ key, hits }) => [key, hits])
    expect(hits(NOW + 4 * MINUTE)).toEqual([
      ['a', 3],
      ['b', 1],
      ['old', 1],
    ])
    expect(hits(NOW + 5 * MINUTE)).toEqual([
      ['a', 2],
      ['b', 1],
    ])
    expect(hits(NOW + 60 * MINUTE)).toEqual([])
  })

  test('a long key is kept as its beginning and a digest, apart from others with that beginning', () => {
    const keys = new RecentKeys()
    const begin = 'x'.repeat(10_000)
    for (const end of ['a', 'a', 'b']) keys.count(begin + end, NOW)
    keys.count('x'.repeat(512), NOW)
    expect(keys.top(10, NOW)).toMatchObject([
      { cut: true, hits: 2 },
      { cut: false, hits: 1 },
      { cut: true, hits: 1 },
    ])
    for (const { key } of keys.top(10, NOW)) expect(key.length).toBeLessThan(600)
  })
})

test('keys of a thousand characters, another one each hit, do not make it grow', () => {
  const record = new LimitRecord('login')
  const state = { policy: 'login', limit: 5, windowSeconds: 60, denied: true, used: 5, remaining: 0 }
  const begin = 'k'.repeat(500)
  for (let i = 0; i < 50_000; i += 1) {
    const key = `${begin}${i}${begin}`
    record.decided('denied', { ...state, key, retryAfterSeconds: 60, resetSeconds: 60 }, NOW + i / 10)
    if (i % 1000 !== 0) continue
    for (const list of [record.busiest, record.mostDenied]) {
      const keys = list.top(10_000, NOW + i / 10)
      expect(keys.length).toBeLessThanOrEqual(128)
      expect(keys.every((each) => each.cut && each.key.length < 600)).toBe(true)
    }
  }
})

test('a dashboard that is closed listens no more', async () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const limiter = new Limiter({ store, name: 'ping', limit: 3, windowSeconds: 60, timeoutMs: 60_000 })
  const recorder = new Recorder(store, ['ping'])
  await limiter.hit('anna')
  recorder.close()
  await limiter.hit('anna')
  expect(recorder.limits[0]?.busiest.top(1, Date.now())).toMatchObject([{ key: 'anna', hits: 1 }])
})

test('names that come from requests are recorded up to a bound', async () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const recorder = new Recorder(store, ['ping'])
  for (let i = 0; i < 80; i += 1)
    await new Limiter({ store, name: `plan-${i}`, limit: 3, windowSeconds: 60, timeoutMs: 60_000 }).hit(
      'anna',
    )
  expect(recorder.limits).toHaveLength(50)
  expect(recorder.limits[0]?.name).toBe('ping')
  recorder.close()
})

test('the summary of batches has the quantiles of the last minute', () => {
  const record = new BatchRecord()
  const batch = { store: new MemoryStore(), keys: 1, outcome: 'decided', error: null } as const
  expect(record.summary(NOW)).toEqual({
    ...{ batches: 0, failed: 0, p50: null, p99: null, meanHits: null, mostHits: null },
  })
  record.add({ ...batch, hits: 500, milliseconds: 9_999 }, NOW - 2 * MINUTE)
  for (let i = 1; i <= 100; i += 1) record.add({ ...batch, hits: i % 2 === 0 ? 1 : 3, milliseconds: i }, NOW)
  record.add({ ...batch, hits: 7, milliseconds: 250, outcome: 'failed', error: 'ERR_STORE_TIMEOUT' }, NOW)
  expect(record.summary(NOW)).toEqual({ batches: 100, failed: 1, p50: 50, p99: 99, meanHits: 2, mostHits: 3 })
  for (let i = 0; i < 5_000; i += 1) record.add({ ...batch, hits: 1, milliseconds: 1 }, NOW)
  expect(record.summary(NOW).batches).toBe(1024)
})

test('a decision that several limits share counts for all of them, a denial for those that deny', async () => {
  const { rateLimit } = await import('express-sql-rate-limit')
  const store = new MemoryStore({ sweepSeconds: false })
  const limits = [
    { name: 'burst', limit: 1, windowSeconds: 1 },
    { name: 'hour', limit: 100, windowSeconds: 3600 },
  ]
  const limiter = rateLimit({ store, limits, timeoutMs: 60_000 })
  const recorder = new Recorder(store, [])
  const seen: unknown[] = []
  const listen = (message: unknown): void => {
    seen.push(message)
  }
  subscribe('express-sql-rate-limit:decision', listen)
  await limiter.hit('anna')
  await limiter.hit('anna')
  unsubscribe('express-sql-rate-limit:decision', listen)
  recorder.close()
  expect(seen).toHaveLength(2)
  const rows = recorder.limits.map(({ name, busiest }) => {
    const [row] = busiest.top(1, Date.now())
    return [name, row?.hits, row?.denied]
  })
  expect(rows).toEqual([
    ['burst', 2, 1],
    ['hour', 1, 0],
  ])
})
