import express from 'express'
import { MemoryStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { type Account, planLimits } from '../../examples/api-plans.js'

describe('examples/api-plans.ts', () => {
  let now: number
  let store: MemoryStore
  beforeEach(() => {
    now = Date.parse('2026-11-30T12:00Z')
    store = new MemoryStore({ clock: () => now })
  })
  afterEach(() => store.close())

  const createApp = (account: Account) =>
    express()
      .use(planLimits(store, () => account))
      .get(['/', '/export'], (_req, res) => void res.sendStatus(204))

  test('a burst is refused for a second, and uses up nothing of the quota', async () => {
    const app = createApp({ id: 'acme', plan: { perSecond: 2, perMonth: 100 } })
    await request(app).get('/').expect(204)
    const { headers } = await request(app).get('/').expect(204)
    expect(headers['ratelimit-policy']).toBe('"burst";q=2;w=1, "quota";q=100;w=2592000')
    const { body } = await request(app).get('/').expect(429)
    expect(body['violated-policies']).toEqual(['burst'])
  })

  test('the quota counts by cost, and starts anew with the month', async () => {
    const app = createApp({ id: 'acme', plan: { perSecond: 10, perMonth: 12 } })
    await request(app).get('/export').expect(204)
    now += 1000
    await request(app).get('/').expect(204)
    const { body } = await request(app).get('/export').expect(429)
    expect(body['violated-policies']).toContain('quota')
    now = Date.parse('2026-12-01T00:00Z')
    const other = createApp({ id: 'globex', plan: { perSecond: 10, perMonth: 12 } })
    await request(other).get('/export').expect(204)
  })
})
