import { type Request, Router } from 'express'
import { cooldown, type Store } from 'express-sql-rate-limit'

/**
 * A reward that a user may claim once an hour.
 *
 * @param userOf - the user of a session that was checked before, never what the client says of itself
 */
export function claimRoutes(store: Store, userOf: (req: Request) => string): Router {
  const claims = cooldown({
    store,
    name: 'claim',
    seconds: 3600,
    keyFn: userOf,
    // A claim that failed on our side is given back.
    skipFailedRequests: true,
  })

  const routes = Router()
  // What a page shows before the button is pressed: { ready, waitSeconds, nextUseAt }. It uses nothing.
  routes.get('/claim', (req, res, next) => {
    claims.peek(userOf(req)).then((state) => res.json(state), next)
  })
  routes.post('/claim', claims, (req, res) => {
    res.json({ claimed: userOf(req) })
  })
  return routes
}
