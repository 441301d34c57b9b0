import type { AddressInfo } from 'node:net'
import { Limiter, MemoryStore } from 'express-sql-rate-limit'
import type { FastifyInstance } from 'fastify'
import { createFastify } from '../../examples/fastify.js'
import { failures, WatchedStore } from '../limiter/watched-store.js'

describe('examples/fastify.ts', () => {
  let app: FastifyInstance
  afterEach(() => app.close())

  const ask = async (path: string, headers: Record<string, string> = {}): Promise<Response> => {
    if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo
    return fetch(`http://127.0.0.1:${port}${path}`, { headers })
  }

  test('lets requests pass up to the limit, with the fields of both limits, and refuses with a problem', async () => {
    app = createFastify(new MemoryStore())
    for (const left of [2, 1, 0]) {
      const answer = await ask('/report')
      expect(answer.status).toBe(200)
      expect(await answer.json()).toEqual({ report: 'done' })
      expect(answer.headers.get('ratelimit-policy')).toBe('"all";q=100;w=60, "reports";q=3;w=3600')
      expect(answer.headers.get('ratelimit')).toMatch(
        new RegExp(`^"all";r=${97 + left};t=\\d+, "reports";r=${left};t=\\d+$`),
      )
      expect(answer.headers.get('retry-after')).toBeNull()
    }
    const refused = await ask('/report')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(refused.headers.get('retry-after')).toBe('3600')
    expect(refused.headers.get('ratelimit')).toBe('"reports";r=0;t=3600')
    expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['reports'] })
    expect((await ask('/')).status).toBe(200)
  })

  test('counts by the address that Fastify knows, IPv6 by its /56', async () => {
    const store = new MemoryStore()
    app = createFastify(store, { trustProxy: '127.0.0.1' })
    for (const address of ['2001:db8:1:2301::1', '2001:db8:1:2302::2']) {
      await ask('/report', { 'X-Forwarded-For': address })
    }
    const reports = new Limiter({ store, name: 'reports', limit: 3, windowSeconds: 3600 })
    expect((await reports.peek('2001:db8:1:2300::/56')).used).toBe(2)
  })

  test('while the store is down, refuses only where it is told to, with 503', async () => {
    const store = new WatchedStore()
    store.before = failures[0]?.[1] as () => unknown
    const error = jest.spyOn(console, 'error').mockImplementation(() => {})
    app = createFastify(store)
    expect((await ask('/')).status).toBe(200)
    const refused = await ask('/report')
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    const body = await refused.text()
    expect(JSON.parse(body)).toMatchObject({ status: 503 })
    expect(body).not.toMatch(/ECONNREFUSED|SELECT/)
    error.mockRestore()
  })
})
