import { MemoryStore } from 'express-sql-rate-limit'
import { createJob } from '../../examples/limiter.js'

test('examples/limiter.ts: runs the job while the limit allows its cost, else tells when to come again', async () => {
  const job = createJob(new MemoryStore())
  const run = jest.fn(async () => {})
  expect(await job('1', run)).toEqual({ remaining: 3 })
  expect(await job('1', run)).toEqual({ remaining: 1 })
  expect(await job('1', run)).toEqual({ retryAfterSeconds: 3600 })
  expect(await job('2', run)).toEqual({ remaining: 3 })
  expect(run).toHaveBeenCalledTimes(3)
})
