import { MemoryStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { createApp } from '../../examples/express-rate-limit.js'

test('examples/express-rate-limit.ts: failures are counted, successes and other routes are not', async () => {
  const app = createApp(new MemoryStore())
  const login = (password: string) => request(app).post('/login').send({ password })
  for (let i = 0; i < 3; i += 1) await login('demo').expect(204)
  for (let i = 0; i < 5; i += 1) await login('wrong').expect(401)
  const { headers } = await login('demo').expect(429)
  expect(headers['retry-after']).toBe('900')
  expect(headers.ratelimit).toBe('"100-in-1min"; r=91; t=60')
  await request(app).get('/').expect(404)
})
