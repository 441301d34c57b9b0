import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import {
  type Decision,
  Limiter,
  MemoryStore,
  MysqlStore,
  rateLimit,
  SqliteStore,
  type Store,
} from 'express-sql-rate-limit'

/* An application as others write it, compiled as each kind of module and run by each Node.js: see package.test.ts. */

const store = new MemoryStore()
const quiet = { error: () => {} }

async function main(): Promise<void> {
  const app = express()
  app.use(rateLimit({ store, name: 'global', limit: 2, windowSeconds: 60 }))
  app.get('/', (req, res) => {
    res.json({ left: req.rateLimit?.remaining })
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const answers: [number, string | null][] = []
  for (let i = 0; i < 3; i += 1) {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    await answer.arrayBuffer()
    answers.push([answer.status, answer.headers.get('ratelimit')])
  }
  server.closeAllConnections()
  server.close()
  const sqlite = await hit(new SqliteStore({ filename: ':memory:' }))
  const mysql = await hit(new MysqlStore({ uri: 'mysql://user@127.0.0.1:1/none' }))
  console.log(JSON.stringify({ answers, sqlite, mysql }))
}

/** What becomes of a hit, or why nothing does. */
async function hit(counting: Store): Promise<string> {
  const limiter = new Limiter({
    store: counting,
    limit: 1,
    windowSeconds: 60,
    onStoreError: 'deny',
    timeoutMs: 20_000,
    logger: quiet,
  })
  const decision = await limiter.hit(['user', '42'], { cost: 1 })
  await counting.close()
  return decision.outcome === 'degraded' ? decision.error.code : decision.outcome
}

/* What the types must know. It is compiled and never called. */
export function checkTypes(decision: Decision): number {
  // @ts-expect-error a limit is a number
  rateLimit({ store, name: 'a', limit: '100', windowSeconds: 60 })
  // @ts-expect-error there is no such option
  rateLimit({ store, name: 'b', limit: 100, windowSeconds: 60, points: 5 })
  // @ts-expect-error a store is required
  rateLimit({ name: 'c', limit: 100, windowSeconds: 60 })
  // @ts-expect-error a cooldown, not a limiter, has `seconds`
  new Limiter({ store, limit: 1, seconds: 60 })
  rateLimit({ store, limits: [{ name: 'd', limit: (req) => req.url.length, windowSeconds: 1 }] })
  if (decision.outcome === 'allowed') return decision.remaining
  // @ts-expect-error nobody can wait for what can never pass, nor while nothing is known
  const seconds: number = decision.retryAfterSeconds
  return seconds
}

void main()
