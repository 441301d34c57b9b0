import { addressKey, Limiter, refusalProblem, type Store, tellDecision } from 'express-sql-rate-limit'
import fastify, {
  type FastifyInstance,
  type FastifyServerOptions,
  type onRequestAsyncHookHandler,
} from 'fastify'

/** A hook that limits, for a whole application or for one route. */
export function limitRequests(limiter: Limiter): onRequestAsyncHookHandler {
  return async function limitRequests(request, reply) {
    const decision = await limiter.hit(addressKey(request))
    tellDecision(reply.raw, limiter, decision)
    if (decision.allowed) return
    const problem = refusalProblem(decision)
    reply.code(problem.status).header('Cache-Control', 'no-store').type('application/problem+json')
    // Fastify calls no handler once a hook has sent an answer.
    return reply.send(JSON.stringify(problem))
  }
}

/** An application with a limit on everything and a tighter one on a route. Behind a proxy, set `trustProxy`. */
export function createFastify(store: Store, options: FastifyServerOptions = {}): FastifyInstance {
  const all = new Limiter({ store, name: 'all', limit: 100, windowSeconds: 60 })
  const reports = new Limiter({ store, name: 'reports', limit: 3, windowSeconds: 3600, onStoreError: 'deny' })

  const app = fastify(options)
  app.addHook('onRequest', limitRequests(all))
  app.get('/', async () => ({ hello: 'world' }))
  app.get('/report', { onRequest: limitRequests(reports) }, async () => ({ report: 'done' }))
  return app
}
