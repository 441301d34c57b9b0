import type { IncomingMessage, ServerResponse } from 'node:http'
import { ProblemDocument } from 'http-problem-details'
import type { Decision, LimitDenial, LimitState } from '../limiter/decision.js'
import { isLimitDenial } from './told-limit.js'

/** The problem type of a denial, of draft-ietf-httpapi-ratelimit-headers-11; it registers the other one too. */
export const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** No key, and nothing of the store: what the client may know is the rule and its wait. */
function sentenceOf({ policy, limit, windowSeconds, every, retryAfterSeconds }: LimitState): string {
  const window = every ?? plural(windowSeconds, 'second')
  const rule = `Limit "${policy}" allows ${plural(limit, 'request')} per ${window}.`
  return retryAfterSeconds === null && limit > 0 ? `${rule} This request alone costs more than that.` : rule
}

/**
 * The problem document of a denial (RFC 9457), for a `handler` that adds members to it. `violated-policies` has the
 * names of the limits that denied, `detail` a sentence on each and the longest wait.
 *
 * `problemType` is a URI reference, by default the type quota-exceeded; `status` must be the one that is sent with it
 * (RFC 9457, section 3.1.2), by default 429.
 *
 * @example
 * rateLimit({
 *   store,
 *   limit: 100,
 *   windowSeconds: 60,
 *   handler: (req, res, next, decision) => {
 *     if (decision.outcome !== 'denied') return next(decision.error)
 *     res.status(429).type('application/problem+json').send({ ...denialProblem(decision), key: decision.key })
 *   },
 * })
 */
export function denialProblem(
  decision: LimitDenial,
  problemType: string = QUOTA_EXCEEDED,
  status = 429,
): ProblemDocument {
  const violated = decision.limits.filter(({ denied }) => denied)
  const sentences = violated.map(sentenceOf)
  const { retryAfterSeconds } = decision
  if (retryAfterSeconds !== null) sentences.push(`Retry in ${plural(retryAfterSeconds, 'second')}.`)
  return new ProblemDocument(
    {
      type: problemType,
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status,
      detail: sentences.join(' '),
    },
    { 'violated-policies': violated.map(({ policy }) => policy) },
  )
}

/**
 * The problem document of any decision that lets no request pass, for other frameworks than Express: that of a denial,
 * with status 429, or the 503 of a store that does not answer. To be sent with its own status as
 * `application/problem+json`, and stored by no cache.
 *
 * @example
 * const problem = refusalProblem(decision)
 * reply.code(problem.status).type('application/problem+json').send(JSON.stringify(problem))
 *
 * @throws TypeError for a decision that lets the request pass.
 */
export function refusalProblem(decision: Decision): ProblemDocument {
  if (decision.allowed) throw new TypeError('Expected `decision` to be a refusal, got one that lets pass')
  return isLimitDenial(decision) ? denialProblem(decision) : unavailableProblem({})
}

const unavailableProblem = (members: Record<string, object>): ProblemDocument =>
  new ProblemDocument(
    {
      type: REDUCED_CAPACITY,
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      detail: 'The rate limiter cannot decide at the moment.',
    },
    members,
  )

/**
 * Answers 503: the store is down and the limiter is told to refuse. Nothing of the store's error is shown, but what
 * `members` adds to the problem document.
 */
export function sendUnavailable(
  req: IncomingMessage,
  res: ServerResponse,
  members: Record<string, object> = {},
): void {
  sendProblem(req, res, unavailableProblem(members))
}

/** Answers 403: an address that is not accepted. */
export function sendForbidden(req: IncomingMessage, res: ServerResponse, detail: string): void {
  sendProblem(req, res, new ProblemDocument({ status: 403, detail }))
}

/** Answers 400 for a request that lacks something. */
export function sendBadRequest(req: IncomingMessage, res: ServerResponse, detail: string): void {
  sendProblem(req, res, new ProblemDocument({ status: 400, detail }))
}

/** Ends the response with a problem document, under its own status. */
export function sendProblem(req: IncomingMessage, res: ServerResponse, problem: ProblemDocument): void {
  sendText(req, res, problem.status, 'application/problem+json', JSON.stringify(problem))
}

/**
 * Ends the response with a text in English; HEAD gets the same headers without it. Never stored by a cache: RFC 6585,
 * section 4.
 */
export function sendText(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  contentType: string,
  text: string,
): void {
  const body = Buffer.from(text)
  res.statusCode = status
  res.setHeader('Content-Type', contentType)
  res.setHeader('Content-Language', 'en')
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('Content-Length', body.length)
  res.end(req.method === 'HEAD' ? undefined : body)
}
