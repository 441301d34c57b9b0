import { createHmac } from 'node:crypto'
import express, { type Express, type RequestHandler } from 'express'
import { Limiter, MemoryStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { webhookRoutes } from '../../examples/webhooks.js'

describe('examples/webhooks.ts', () => {
  const SECRETS = new Map([['shop', 'secret of the shop']])
  const BODY = '{"order": 42}'
  const sign = (secret: string) => createHmac('sha256', secret).update(BODY).digest('hex')

  let store: MemoryStore
  let app: Express
  beforeEach(() => {
    store = new MemoryStore()
    const take: RequestHandler = (_req, res) => void res.sendStatus(202)
    app = express().use(webhookRoutes(store, (name) => SECRETS.get(name), take))
  })
  afterEach(() => store.close())

  const post = (sender: string, signature: string) =>
    request(app)
      .post(`/webhooks/${sender}`)
      .set('Content-Type', 'application/json')
      .set('X-Signature', signature)
      .send(BODY)

  test('takes what is signed, up to the limit of its sender, and says when to come again', async () => {
    await post('shop', sign('secret of the shop')).expect(202)
    await new Limiter({ store, name: 'webhook', limit: 600, windowSeconds: 60 }).penalize('shop', 599)
    const { headers } = await post('shop', sign('secret of the shop')).expect(429)
    expect(headers['retry-after']).toBe('60')
  })

  const used = async (name: string, limit: number, key: string) =>
    (await new Limiter({ store, name, limit, windowSeconds: 60 }).peek(key)).used

  test('gives back what was signed, and counts what was refused before anybody looked', async () => {
    await post('shop', sign('secret of the shop')).expect(202)
    const asked = request(app).post('/webhooks/shop').set('X-Signature', sign('secret of the shop'))
    await asked.send('x'.repeat(300_000)).expect(413)
    // Given back once the answer is sent.
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await used('webhook-junk', 300, '127.0.0.1')).toBe(1)
  })

  test.each([
    ['a wrong signature', 'shop', sign('another')],
    ['none', 'shop', ''],
    ['no hexadecimal', 'shop', 'zz'],
    ['a sender that is not known, signed with no secret', 'stranger', sign('')],
  ])('refuses %s, and counts it', async (_what, sender, signature) => {
    await post(sender, signature).expect(401)
    expect(await used('webhook-junk', 300, '127.0.0.1')).toBe(1)
    expect(await used('webhook', 600, sender)).toBe(0)
  })
})
