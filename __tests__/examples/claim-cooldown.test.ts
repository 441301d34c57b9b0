import express from 'express'
import { MemoryStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { claimRoutes } from '../../examples/claim-cooldown.js'

test('examples/claim-cooldown.ts: one claim an hour, and when the next one is', async () => {
  const store = new MemoryStore()
  const app = express().use(claimRoutes(store, (req) => req.get('X-User') ?? 'nobody'))
  const get = (user: string) => request(app).get('/claim').set('X-User', user)
  const post = (user: string) => request(app).post('/claim').set('X-User', user)

  expect((await get('ann').expect(200)).body).toEqual({ ready: true, waitSeconds: 0, nextUseAt: null })
  await post('ann').expect(200, { claimed: 'ann' })
  const { body } = await post('ann').expect(429)
  expect(body).toMatchObject({ waitSeconds: 3600, nextUseAt: expect.stringMatching(/Z$/) })
  expect((await get('ann').expect(200)).body).toMatchObject({ ready: false, waitSeconds: 3600 })
  await post('bob').expect(200)

  const error = jest.spyOn(console, 'error').mockImplementation(() => {})
  await store.close()
  await post('cid').expect(503)
  await get('cid').expect(500)
  error.mockRestore()
})
