import type { Refund } from 'express-sql-rate-limit'
import { SqliteStore } from 'express-sql-rate-limit'
import { Breaker } from '../../lib/limiter/breaker.js'
import { RefundQueue } from '../../lib/limiter/refund-queue.js'
import { charge, hit, peek, policy } from '../stores/policies.js'
import { failures, gate, WatchedStore } from './watched-store.js'

const by = policy({ limit: 10_000 })
const inner = (): SqliteStore => new SqliteStore({ filename: ':memory:', sweepSeconds: false })

/** A queue on a watched store, and the keys of each call that it made. */
function setUp(sqlite = inner()) {
  const store = new WatchedStore(sqlite)
  const calls: string[][] = []
  const refund = store.refund.bind(store)
  store.refund = (refunds, signal) => {
    calls.push([...new Set(refunds.map(({ key }) => key.slice(key.indexOf(':') + 1)))])
    return refund(refunds, signal)
  }
  const breaker = new Breaker(store, () => 0)
  return { store, calls, sqlite, queue: new RefundQueue(store, breaker) }
}

async function taken(sqlite: SqliteStore, key: string): Promise<Refund> {
  return { ...charge(key, by), cost: 1, at: (await hit(sqlite, key, by)).at }
}

test('what comes while a call is under way goes in the next, 50 keys at a time', async () => {
  const { store, calls, sqlite, queue } = setUp()
  const { opened, open } = gate()
  store.before = () => opened
  const keys = Array.from({ length: 120 }, (_, i) => `k${i}`)
  const refunds = [await taken(sqlite, 'first')]
  for (const key of keys) refunds.push(await taken(sqlite, key))
  const given = refunds.map((refund) => queue.submit([refund]))
  await new Promise(setImmediate)
  const last = queue.submit([await taken(sqlite, 'k119'), await taken(sqlite, 'first')])
  open()
  await Promise.all([...given, last])
  expect(calls.map((call) => call.length)).toEqual([50, 50, 22])
  for (const key of [...keys, 'first']) expect((await peek(sqlite, key, by)).used).toBe(0)
})

test('hits far back go key by key, and those of others are not behind them', async () => {
  const { store, calls, sqlite, queue } = setUp()
  const far: Refund[] = []
  for (const key of ['far1', 'far2', 'far3']) {
    far.push(await taken(sqlite, key), await taken(sqlite, key))
    for (let i = 0; i < 150; i += 1) await hit(sqlite, key, by)
  }
  const near = await taken(sqlite, 'near')
  const later: Promise<void>[] = []
  store.before = async () => {
    if (calls.length < 4) later.push(queue.submit([await taken(sqlite, `later${calls.length}`)]))
  }
  await Promise.all([queue.submit([near]), ...far.map((refund) => queue.submit([refund]))])
  await Promise.all(later)
  expect(calls).toEqual([
    ['near', 'far1', 'far2', 'far3'],
    ['far1'],
    ['later1', 'later2'],
    ['far2'],
    ['later3'],
    ['far3'],
  ])
  for (const key of ['far1', 'far2', 'far3']) expect((await peek(sqlite, key, by)).used).toBe(150)
  for (const key of ['near', 'later1', 'later2', 'later3']) expect((await peek(sqlite, key, by)).used).toBe(0)
})

test('500 refunds at most in one call, and a key with more does not keep others waiting', async () => {
  const { calls, sqlite, queue } = setUp()
  const refunds: Refund[] = []
  for (let i = 0; i < 1200; i += 1) refunds.push(await taken(sqlite, 'many'))
  refunds.push(await taken(sqlite, 'other'))
  await Promise.all(refunds.map((refund) => queue.submit([refund])))
  expect(calls.filter((call) => call.includes('many')).length).toBeGreaterThanOrEqual(3)
  expect(calls.findIndex((call) => call.includes('other'))).toBeLessThanOrEqual(2)
  expect((await peek(sqlite, 'many', by)).used).toBe(0)
})

test('a failing store is told to everyone who waits, and the next refund is tried again', async () => {
  const { store, sqlite, queue } = setUp()
  const [first, second] = [await taken(sqlite, 'a'), await taken(sqlite, 'b')]
  const [, fail] = failures[0] as (typeof failures)[number]
  store.before = fail
  const told = { name: 'StoreError', code: 'ERR_STORE_CONNECTION' }
  const both = [queue.submit([first]), queue.submit([first, second])]
  for (const each of both) await expect(each).rejects.toMatchObject(told)
  store.before = () => {}
  await queue.submit([second])
  expect((await peek(sqlite, 'b', by)).used).toBe(0)
})
