import type { Request, RequestHandler } from 'express'
import { addressKey, normalizeKey, rateLimit, type Store } from 'express-sql-rate-limit'

const WINDOW_SECONDS = 900

export interface LoginLimitsOptions {
  /**
   * What an account under attack asks for before the password is looked at: a captcha, a second factor, an e-mail to
   * its owner, a log line. It answers, or calls `next` as any handler. Default: it calls `next`.
   */
  readonly underAttack?: RequestHandler | undefined
}

/**
 * The limits before a login. They count failures, by hits that a success gives back, and before the account is looked
 * up: an account that does not exist answers like one that does (hazard 150).
 *
 * - 30 by address: one attacker, many accounts. An office behind one address has a few people who mistype.
 * - 5 by account and network (an IPv4 address, a /56 of IPv6): one attacker, one account. It denies the attacker's
 *   network and no other, so a stranger cannot lock the owner out (hazard 149).
 * - 100 by account: one account, many networks. To deny here would let anybody with 20 networks close an account for its
 *   owner. So this one only tells, and `underAttack` asks for more than a password, of the owner as well.
 *
 * Who shares the owner's network can still use up its five attempts. Nothing short of knowing the device helps there.
 *
 * The body must be parsed before, and parsed small: it is what a stranger sent.
 *
 * @example
 * app.post('/login', express.json({ limit: '2kb' }), loginLimits(store, { underAttack: requireCaptcha }), login)
 */
export function loginLimits(store: Store, { underAttack }: LoginLimitsOptions = {}): RequestHandler[] {
  const denying = rateLimit({
    store,
    // One decision: a request that one of them denies is charged to neither, so an attacker whose network is through
    // with one account does not use up the attempts of its neighbours behind the same address.
    limits: [
      {
        name: 'login-address',
        limit: 30,
        windowSeconds: WINDOW_SECONDS,
        keyFn: (req: Request) => addressKey(req),
      },
      {
        name: 'login-account-network',
        limit: 5,
        windowSeconds: WINDOW_SECONDS,
        keyFn: (req: Request) => [accountOf(req), addressKey(req)],
      },
    ],
    // Taken before and given back after a success: a burst of parallel guesses cannot pass before the first fails.
    skipSuccessfulRequests: true,
    // Nobody gets free guesses by bringing the store down.
    onStoreError: 'deny',
  })

  const telling = rateLimit({
    store,
    name: 'login-account',
    limit: 100,
    windowSeconds: WINDOW_SECONDS,
    keyFn: accountOf,
    skipSuccessfulRequests: true,
    dryRun: true,
    // They would tell a stranger how many others try, and that somebody does.
    standardHeaders: false,
  })

  const escalate: RequestHandler = (req, res, next) => {
    // After the last limiter `req.rateLimit` is its decision.
    if (req.rateLimit?.wouldDeny && underAttack !== undefined) underAttack(req, res, next)
    else next()
  }

  return [denying, telling, escalate]
}

/**
 * The account as the login will look it up, in one spelling. Where names and e-mail addresses both log in, or where the
 * look-up ignores accents, take the account's id and fall back to this. A body without a name is counted too.
 */
const accountOf = (req: Request): string => {
  const user: unknown = req.body?.user
  return normalizeKey(typeof user === 'string' ? user : '')
}
