import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type BatchMessage, Limiter } from 'express-sql-rate-limit'
import { failures, gate, WatchedStore } from './watched-store.js'

const CHANNEL = 'express-sql-rate-limit:batch'
let batches: BatchMessage[]
const listen = (message: unknown): void => {
  batches.push(message as BatchMessage)
}

beforeEach(() => {
  batches = []
  subscribe(CHANNEL, listen)
})
afterEach(() => {
  unsubscribe(CHANNEL, listen)
})

const quiet = { error() {} }
const setUp = () => {
  const store = new WatchedStore()
  const limiter = new Limiter({ store, limit: 100, windowSeconds: 60, timeoutMs: 60_000, logger: quiet })
  return { store, limiter }
}

test('tells how many hits and keys a batch had, and how long the store took', async () => {
  const { store, limiter } = setUp()
  const { opened, open } = gate()
  store.before = () => opened
  const hits = ['anna', 'anna', 'ben'].map((key) => limiter.hit(key))
  const sentAt = performance.now()
  await new Promise((resolve) => setTimeout(resolve, 20))
  const waited = performance.now() - sentAt
  open()
  await Promise.all(hits)
  const told = { store, hits: 3, keys: 2, outcome: 'decided', error: null }
  expect(batches).toEqual([{ ...told, milliseconds: expect.any(Number) }])
  expect(batches[0]?.milliseconds).toBeGreaterThanOrEqual(waited - 1)
})

test.each(failures)('tells of a batch that failed because the store %s', async (_, fail) => {
  const { store } = setUp()
  const limiter = new Limiter({ store, limit: 1, windowSeconds: 60, timeoutMs: 30, logger: quiet })
  store.before = fail
  expect((await limiter.hit('anna')).outcome).toBe('degraded')
  // What a store says that was given up comes a turn later.
  await new Promise((resolve) => setImmediate(resolve))
  expect(batches).toMatchObject([
    { store, hits: 1, keys: 1, outcome: 'failed', error: expect.stringMatching(/^ERR_STORE_/) },
  ])
})

test('a hit that is refused from memory makes no batch', async () => {
  const { store } = setUp()
  const limiter = new Limiter({ store, limit: 1, windowSeconds: 60, timeoutMs: 60_000 })
  await limiter.hit('anna')
  await limiter.hit('anna')
  expect(batches).toHaveLength(2)
  await limiter.hit('anna')
  expect(batches).toHaveLength(2)
})
