import { execFile } from 'node:child_process'
import type { Server } from 'node:http'
import { promisify } from 'node:util'
import { MemoryStore } from 'express-sql-rate-limit'
import { Registry } from 'prom-client'
import { createMeasuredApp } from '../../examples/prometheus.js'
import { portOf, serve } from '../http/serve.js'
import { failures, WatchedStore } from '../limiter/watched-store.js'

const run = promisify(execFile)

test('examples/prometheus.ts: curl /metrics shows what clients and the store did, and no key', async () => {
  const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
  const error = jest.spyOn(console, 'error').mockImplementation(() => {})
  const server: Server = await serve(createMeasuredApp(store, new Registry()))
  const url = `http://127.0.0.1:${portOf(server)}`
  const curl = async (path: string): Promise<string> => (await run('curl', ['-s', `${url}${path}`])).stdout

  for (let i = 0; i < 5; i += 1) await curl('/')
  let metrics = (await curl('/metrics')).split('\n')
  expect(metrics).toContain('rate_limit_decisions_total{policy="global",outcome="allowed"} 3')
  expect(metrics).toContain('rate_limit_decisions_total{policy="global",outcome="denied"} 2')
  expect(metrics).toContain('rate_limit_decision_duration_seconds_count{outcome="denied"} 2')
  expect(metrics).toContain('rate_limit_store_up 1')
  expect(metrics).not.toContain('rate_limit_store_errors_total{code="ERR_STORE_CONNECTION"} 1')

  store.before = failures[0]?.[1] as () => unknown
  // The denial is still remembered, so ask until it is not.
  for (let i = 0; i < 100; i += 1) {
    await curl('/')
    metrics = (await curl('/metrics')).split('\n')
    if (metrics.some((line) => line.includes('outcome="degraded"'))) break
  }
  expect(metrics).toContain('rate_limit_decisions_total{policy="global",outcome="degraded"} 1')
  expect(metrics).toContain('rate_limit_store_errors_total{code="ERR_STORE_CONNECTION"} 1')
  expect(metrics.join('\n')).not.toContain('127.0.0.1')
  error.mockRestore()
})
