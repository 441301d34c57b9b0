import { Limiter } from 'express-sql-rate-limit'
import { gate, WatchedStore } from './watched-store.js'

describe('all limiters of a store', () => {
  test('hazard 128: share its batches, however many there are', async () => {
    const store = new WatchedStore()
    const limiters = Array.from({ length: 100 }, (_, i) => {
      return new Limiter({ store, name: `n${i}`, limit: 1, windowSeconds: 1 })
    })
    await Promise.all(limiters.map((limiter) => limiter.hit('k')))
    expect(store.batches.map(({ hits }) => hits.length)).toEqual([100])
  })

  test('wait for no other store', async () => {
    const held = new WatchedStore()
    const { opened, open } = gate()
    held.before = () => opened
    const waiting = new Limiter({ store: held, limit: 1, windowSeconds: 1, timeoutMs: 60_000 }).hit('k')
    const free = new Limiter({ store: new WatchedStore(), limit: 1, windowSeconds: 1 })
    expect(await free.hit('k')).toMatchObject({ outcome: 'allowed' })
    open()
    expect(await waiting).toMatchObject({ outcome: 'allowed' })
  })
})
