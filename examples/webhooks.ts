import { createHmac, timingSafeEqual } from 'node:crypto'
import express, { type Request, type RequestHandler, Router } from 'express'
import { rateLimit, type Store } from 'express-sql-rate-limit'

/**
 * Receives webhooks, signed by HMAC-SHA256 of the body in hexadecimal. A sender that is refused sends the same again after
 * `Retry-After`, so limits may be wide, and nothing is lost by them.
 *
 * @param secretOf - the secret that a sender signs with, undefined for one that is not known
 */
export function webhookRoutes(
  store: Store,
  secretOf: (sender: string) => string | undefined,
  take: RequestHandler,
): Router {
  // Before anything is read: junk by address. What was signed is given back, so that senders behind one address, and
  // their bursts, are held by their own limit alone.
  const junkLimit = rateLimit({
    store,
    name: 'webhook-junk',
    limit: 300,
    windowSeconds: 60,
    skipSuccessfulRequests: true,
    // And nothing else: a body that is too large is refused before its signature is looked at.
    requestWasSuccessful: (_req, res) => res.locals.isSigned === true,
  })

  const checkSignature: RequestHandler = (req, res, next) => {
    const secret = secretOf(senderOf(req))
    const sent = Buffer.from(req.get('X-Signature') ?? '', 'hex')
    const own = createHmac('sha256', secret ?? '')
      .update(Buffer.isBuffer(req.body) ? req.body : '')
      .digest()
    res.locals.isSigned = secret !== undefined && sent.length === own.length && timingSafeEqual(sent, own)
    if (res.locals.isSigned) next()
    else res.sendStatus(401)
  }

  // After the signature: nobody else can use up what a sender has. While the store is down webhooks pass uncounted, as one
  // that is late may be worse than one too many.
  const senderLimit = rateLimit({ store, name: 'webhook', limit: 600, windowSeconds: 60, keyFn: senderOf })

  const routes = Router()
  routes.post(
    '/webhooks/:sender',
    junkLimit,
    // The bytes that were signed, whatever type they claim to be.
    express.raw({ type: () => true, limit: '256kb' }),
    checkSignature,
    senderLimit,
    take,
  )
  return routes
}

const senderOf = (req: Request): string => String(req.params.sender)
