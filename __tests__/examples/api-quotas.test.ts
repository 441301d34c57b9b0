import express, { type Express } from 'express'
import { SqliteStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { apiQuotas } from '../../examples/api-quotas.js'

describe('an API with plans', () => {
  let now: number
  let store: SqliteStore
  let app: Express

  beforeEach(() => {
    now = Date.parse('2026-11-30T12:00Z')
    store = new SqliteStore({
      filename: ':memory:',
      sweepSeconds: false,
      clock: () => now,
      keepUsageSeconds: { plan: 400 * 86_400 },
    })
    app = express().use(apiQuotas(store))
  })
  afterEach(() => store.close())

  const hello = (key: string) => request(app).get('/api/hello').set('X-Api-Key', key)
  const usage = (key: string, query: object) => request(app).get('/usage').set('X-Api-Key', key).query(query)

  test('counts the requests of an account until its month in Berlin ends', async () => {
    const { body, headers } = await hello('demo-free').expect(200)
    expect(body).toEqual({ hello: 'acme', left: 999 })
    expect(headers['ratelimit-policy']).toBe('"plan";q=1000;w=2592000')
    expect((await hello('demo-pro').expect(200)).body.left).toBe(99_999)
    now = Date.parse('2026-11-30T22:59:59Z')
    expect((await hello('demo-free').expect(200)).body.left).toBe(998)
    now = Date.parse('2026-11-30T23:00:00Z')
    expect((await hello('demo-free').expect(200)).body.left).toBe(999)
    await hello('stolen').expect(401)
  })

  test('refuses the request above the quota until the next month', async () => {
    for (let i = 0; i < 1000; i += 1) await hello('demo-free').expect(200)
    const denied = await hello('demo-free').expect(429)
    expect(denied.body.detail).toBe('Limit "plan" allows 1000 requests per month. Retry in 39600 seconds.')
    await hello('demo-pro').expect(200)
  }, 60_000)

  test('tells an account what it has used, by day and by month', async () => {
    for (let i = 0; i < 3; i += 1) await hello('demo-free')
    await hello('demo-pro')
    now = Date.parse('2026-12-01T12:00Z')
    await hello('demo-free')
    const days = await usage('demo-free', { from: '2026-11-30T12:00Z', to: '2026-12-01T12:00Z' }).expect(200)
    expect(days.body).toEqual({
      account: 'acme',
      used: 4,
      buckets: [
        { from: '2026-11-29T23:00:00.000Z', to: '2026-11-30T23:00:00.000Z', used: 3 },
        { from: '2026-11-30T23:00:00.000Z', to: '2026-12-01T23:00:00.000Z', used: 1 },
      ],
    })
    const months = await usage('demo-free', { from: '2026-01-01', to: '2027-01-01', by: 'month' }).expect(200)
    const used = months.body.buckets.map((bucket: { used: number }) => bucket.used)
    // Thirteen: in Berlin the last hour of 2026 in UTC is in January.
    expect(used).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0])
    await usage('demo-free', { by: 'fortnight' }).expect(400)
    await usage('demo-free', { from: 'yesterday' }).expect(400)
    await usage('demo-free', { from: '1970-01-01' }).expect(400)
    await usage('demo-free', { from: '2026-01-01', to: '2030-01-01', by: 'month' }).expect(400)
    await usage('stolen', {}).expect(401)
  })
})
