import { createServer, type Server } from 'node:http'
import { addressKey, Limiter, refusalProblem, type Store, tellDecision } from 'express-sql-rate-limit'

/** A server of node:http with a limit by address. */
export function createHttpServer(store: Store): Server {
  const limiter = new Limiter({ store, name: 'http', limit: 3, windowSeconds: 60, onStoreError: 'deny' })

  return createServer(async (req, res) => {
    // The address of the socket. Behind a proxy that is the proxy: take yours from the header that it writes.
    const decision = await limiter.hit(addressKey(req))
    tellDecision(res, limiter, decision)
    if (decision.allowed) {
      res.end('Hello!\n')
      return
    }
    const problem = refusalProblem(decision)
    res.writeHead(problem.status, { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' })
    res.end(JSON.stringify(problem))
  })
}
