import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { fileURLToPath } from 'node:url'
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Response } from 'express'
import {
  addressKey,
  type Decision,
  type DenialHandler,
  dashboard,
  denialProblem,
  type RateLimitMiddleware,
  type RateLimitOptions,
  rateLimit,
  rateLimitStatus,
  type Store,
} from 'express-sql-rate-limit'
import { apiQuotas } from './api-quotas.js'

/** For any user: this is an example. */
const PASSWORD = 'demo'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))

/** The example application, without a port, so that tests can mount it. */
export function createApp(store: Store): Express {
  const globalLimit = limiter({ store, name: 'global', limit: 100, windowSeconds: 60 })
  const pingLimit = limiter({
    store,
    name: 'ping',
    limit: 3,
    windowSeconds: 60,
    // A header can be forged, and whoever writes a new one for each request has no limit at all: in production take
    // the user of a verified session or API key. X-Forwarded-For is no better. Behind a proxy, set Express's
    // `trust proxy` to that proxy, and `req.ip` and the default key are the client's.
    keyFn: (req) => req.get('X-Client-Key') || addressKey(req),
  })
  // One attacker with many accounts and one account attacked from many addresses are different problems. Both
  // limits say `deny`: nobody gets free guesses by bringing the store down.
  const loginByAddress = limiter({
    store,
    name: 'login',
    limit: 15,
    windowSeconds: 900,
    keyFn: (req) => `login:${addressKey(req)}`,
    onStoreError: 'deny',
  })
  const loginByAccount = limiter({
    store,
    name: 'login-account',
    limit: 5,
    windowSeconds: 900,
    // Accounts here are told apart by case. Where yours are not, the key must not be either.
    keyFn: (req) => `login:${req.body.user}`,
    onStoreError: 'deny',
  })
  // A cap on attempts, not the cooldown between two claims: that is a rule of your data, enforced with the claim. The
  // user would be the session's; here it is whoever the body says.
  const claimLimit = limiter({
    store,
    name: 'claim',
    limit: 1,
    windowSeconds: 3600,
    keyFn: (req) => `claim:${req.body.user}`,
  })
  const limiters = [globalLimit, pingLimit, loginByAddress, loginByAccount, claimLimit]

  const app = express()
  app.disable('x-powered-by')

  // Before the global limiter: it counts nothing, so that asking for an address does not change the answer, and a
  // dashboard that polls uses nobody's quota. It shows any key to anybody who asks, as this is an example: in production
  // give `authorize` a function that knows your operators.
  app.get('/status', rateLimitStatus({ limiters, authorize: 'none' }))

  // At the root, with a panel of this example's own at the top of the page. Everybody may look, as this is an example; only
  // who was given the link may reset and block. Not whoever comes from this machine: that may be a proxy.
  const code = randomUUID()
  const page = dashboard({
    limiters,
    store,
    authorize: (req) => req.get('Cookie')?.split('; ').includes(`operator=${code}`) || 'read',
    panels: ['/playground.js'],
  })
  app.locals.dashboard = page
  app.locals.operatorPath = `/operator/${code}`
  app.get(app.locals.operatorPath, (_req, res) => {
    res.cookie('operator', code, { httpOnly: true, sameSite: 'strict' }).redirect('/')
  })
  app.use(page)
  app.get(['/playground.js', '/playground.css'], (req, res) => {
    res.sendFile(req.path.slice(1), { root: FOLDER })
  })

  // Before any body is read: a request that is refused costs nothing more.
  app.use(globalLimit, remember)

  app.get('/ping', pingLimit, remember, (_req, res) => {
    res.json({ pong: true, limits: limitsOf(res) })
  })

  const login: RequestHandler = (req, res) => {
    if (req.body.password === PASSWORD) res.json({ welcome: req.body.user, limits: limitsOf(res) })
    else sendProblem(res, 401, { detail: 'Wrong user or password.' })
  }
  app.post(
    '/login',
    [loginByAddress, remember, express.json(), requireTexts('user', 'password')],
    [loginByAccount, remember],
    login,
  )

  app.post('/claim', express.json(), requireTexts('user'), claimLimit, remember, (req, res) => {
    res.json({ claimed: req.body.user, limits: limitsOf(res) })
  })

  app.use(apiQuotas(store))

  app.use((req, res) => sendProblem(res, 404, { detail: `There is no ${req.method} ${req.path} here.` }))
  app.use(onError)
  return app
}

/** A limiter whose 429 names the key as well. A service that does not want to tell leaves `handler` out. */
function limiter(options: RateLimitOptions): RateLimitMiddleware {
  const handler: DenialHandler = (_req, res, _next, decision) => {
    note(res, decision)
    if (decision.outcome === 'degraded') {
      sendProblem(res, 503, { detail: 'The rate limiter cannot decide at the moment.' })
      return
    }
    sendProblem(res, 429, { ...denialProblem(decision), key: decision.key })
  }
  // Longer than the default: on a laptop that is busy with many curls, wait rather than let requests through uncounted.
  return rateLimit({ timeoutMs: 2000, ...options, handler })
}

/** What an answer tells of one decision; `used` and `remaining` are null while the store is down. */
type Limit = Pick<Decision, 'policy' | 'key' | 'used' | 'limit' | 'remaining'>

/** What the limiters on the request's way have said so far. */
const limitsOf = (res: Response): Limit[] => {
  res.locals.limits ??= []
  return res.locals.limits
}

function note(res: Response, { policy, key, used, limit, remaining }: Decision): void {
  limitsOf(res).push({ policy, key, used, limit, remaining })
}

/** Keeps what the limiter before it decided: `req.rateLimit` is the next one's afterwards. */
const remember: RequestHandler = (req, res, next) => {
  if (req.rateLimit !== undefined) note(res, req.rateLimit)
  next()
}

/** Refuses bodies without these texts, before one of them becomes part of a key. */
function requireTexts(...names: string[]): RequestHandler {
  return (req, res, next) => {
    const missing = names.find((name) => typeof req.body?.[name] !== 'string' || req.body[name] === '')
    if (missing === undefined) next()
    else sendProblem(res, 400, { detail: `Send a JSON object in which "${missing}" is a text.` })
  }
}

const onError: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent) {
    next(error)
    return
  }
  // Express's own errors of the client's making carry their status: malformed JSON, a body that is too large.
  const status = error?.status >= 400 && error?.status < 500 ? error.status : 500
  if (status === 500) console.error(error)
  const detail = error?.type === 'entity.parse.failed' ? 'The body is not valid JSON.' : STATUS_CODES[status]
  sendProblem(res, status, { detail })
}

/** Answers with a problem document (RFC 9457) that ends in the limits on the request's way. */
function sendProblem(res: Response, status: number, members: Record<string, unknown>): void {
  const problem = {
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    ...members,
    limits: limitsOf(res),
  }
  res.statusCode = status
  res.setHeader('Content-Type', 'application/problem+json')
  // A cached 429 would refuse others, and later requests too (RFC 6585, section 4).
  res.setHeader('Cache-Control', 'no-store')
  res.end(JSON.stringify(problem))
}
