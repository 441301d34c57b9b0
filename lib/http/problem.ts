import type { IncomingMessage, ServerResponse } from 'node:http'
import { ProblemDocument } from 'http-problem-details'
import type { DeniedDecision } from '../limiter/decision.js'
import type { Policy } from '../stores/store.js'

/** Problem types of draft-ietf-httpapi-ratelimit-headers-11, and none of our own. */
const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const detailOf = ({ name, limit, windowSeconds }: Policy, { retryAfterSeconds }: DeniedDecision): string => {
  const rule = `Limit "${name}" allows ${plural(limit, 'request')} per ${plural(windowSeconds, 'second')}.`
  if (retryAfterSeconds !== null) return `${rule} Retry in ${plural(retryAfterSeconds, 'second')}.`
  return limit === 0 ? rule : `${rule} This request alone costs more than that.`
}

/**
 * The problem document of a denial (RFC 9457, type quota-exceeded), for a `handler` that adds members to it.
 *
 * @example
 * handler: (req, res, next, decision) => {
 *   if (decision.outcome !== 'denied') return next(decision.error)
 *   res.status(429).type('application/problem+json').send({ ...denialProblem(limiter.policy, decision), key: decision.key })
 * }
 */
export const denialProblem = (policy: Policy, denied: DeniedDecision): ProblemDocument =>
  new ProblemDocument(
    {
      type: QUOTA_EXCEEDED,
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: detailOf(policy, denied),
    },
    { 'violated-policies': [policy.name] },
  )

/** Answers 503: the store is down and the limiter is told to refuse. Nothing of the store's error is shown. */
export function sendUnavailable(req: IncomingMessage, res: ServerResponse): void {
  const problem = new ProblemDocument({
    type: REDUCED_CAPACITY,
    title: 'Request cannot be satisfied due to temporary server capacity constraints',
    status: 503,
    detail: 'The rate limiter cannot decide at the moment.',
  })
  sendProblem(req, res, problem)
}

/** Answers 400 for a request that lacks something. */
export function sendBadRequest(req: IncomingMessage, res: ServerResponse, detail: string): void {
  sendProblem(req, res, new ProblemDocument({ status: 400, detail }))
}

/** Ends the response with a problem document. Never stored by a cache: RFC 6585, section 4. */
export function sendProblem(req: IncomingMessage, res: ServerResponse, problem: ProblemDocument): void {
  const body = Buffer.from(JSON.stringify(problem))
  res.statusCode = problem.status
  res.setHeader('Content-Type', 'application/problem+json')
  res.setHeader('Content-Language', 'en')
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('Content-Length', body.length)
  res.end(req.method === 'HEAD' ? undefined : body)
}
