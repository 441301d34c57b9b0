import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Limiter, MemoryStore, type Store } from 'express-sql-rate-limit'
import { createHttpServer } from '../../examples/node-http.js'
import { failures, WatchedStore } from '../limiter/watched-store.js'

describe('examples/node-http.ts', () => {
  let server: Server
  const ask = async (store: Store) => {
    if (server === undefined || !server.listening) {
      server = createHttpServer(store)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
    }
    return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  }
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  test('lets requests pass up to the limit, and refuses with a problem', async () => {
    const store = new MemoryStore()
    for (const left of [2, 1, 0]) {
      const answer = await ask(store)
      expect(await answer.text()).toBe('Hello!\n')
      expect(answer.headers.get('ratelimit-policy')).toBe('"http";q=3;w=60')
      expect(answer.headers.get('ratelimit')).toBe(`"http";r=${left};t=60`)
      expect(answer.headers.get('retry-after')).toBeNull()
    }
    const refused = await ask(store)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(refused.headers.get('ratelimit')).toBe('"http";r=0;t=60')
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['http'] })
    const limiter = new Limiter({ store, name: 'http', limit: 3, windowSeconds: 60 })
    expect((await limiter.peek('127.0.0.1')).used).toBe(3)
  })

  test('answers 503 while the store is down, and tells nothing of it', async () => {
    const store = new WatchedStore()
    store.before = failures[0]?.[1] as () => unknown
    const error = jest.spyOn(console, 'error').mockImplementation(() => {})
    const refused = await ask(store)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await refused.text()).not.toMatch(/ECONNREFUSED|SELECT/)
    error.mockRestore()
  })
})
