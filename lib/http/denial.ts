import { STATUS_CODES } from 'node:http'
import type { Request, Response } from 'express'
import type { LimitDenial } from '../limiter/decision.js'
import { denialProblem, sendProblem, sendText } from './problem.js'

/** How a denial is answered. */
export interface DenialOptions {
  /** The status of the response, and of its problem document. */
  readonly statusCode: number
  /**
   * The body: a text, an object to send as JSON, or a function `(req, res, decision)`, sync or async, that returns one.
   * `undefined`, also as a result, is the built-in answer.
   */
  readonly message: unknown
  /** The `type` of the problem document, a URI reference. */
  readonly problemType: string
}

/** `application/json` stands here for clients that do not know of problem documents: they get one all the same. */
const JSON_TYPES: readonly string[] = ['application/problem+json', 'application/json']
/** In the order that `*` chooses from: a problem document before all, and plain text for `text/*`. */
const OFFERED = [...JSON_TYPES, 'text/plain', 'text/html']

/**
 * Answers a denied request, whose headers are set already: with `message`, else with a problem document, or with a
 * plain text or a small HTML page for a client that clearly prefers it. Never 406, never stored by a cache.
 *
 * @returns when the response is ended. Rejects with whatever a `message` function throws; then nothing is sent.
 */
export async function answerDenial(
  req: Request,
  res: Response,
  decision: LimitDenial,
  options: DenialOptions,
): Promise<void> {
  const { message, statusCode } = options
  const body = typeof message === 'function' ? await message(req, res, decision) : message
  // The function may have answered itself, or another middleware while it was awaited (hazard 117).
  if (res.headersSent || res.writableEnded) return
  if (body === undefined) {
    sendBuiltIn(req, res, decision, options)
    return
  }
  res.status(statusCode).set('Cache-Control', 'no-store')
  // NOTE: Express 4 takes `send(404)` for a status.
  if (typeof body === 'number') res.json(body)
  else res.send(body)
}

function sendBuiltIn(req: Request, res: Response, decision: LimitDenial, options: DenialOptions): void {
  const { statusCode, problemType } = options
  const problem = denialProblem(decision, problemType, statusCode)
  res.vary('Accept')
  const type = preferredType(req)
  if (type === 'text/html') {
    const page = htmlPage(STATUS_CODES[statusCode] ?? problem.title, problem.detail ?? '')
    sendText(req, res, statusCode, 'text/html; charset=utf-8', page)
  } else if (type === 'text/plain') {
    sendText(req, res, statusCode, 'text/plain; charset=utf-8', `${problem.detail}\n`)
  } else {
    sendProblem(req, res, problem)
  }
}

/**
 * The type that a client prefers to JSON, if any. `req.accepts` lets the order of equal ranges decide, which means
 * nothing (RFC 9110, section 12.5.1), and generated API clients do send `text/plain, application/json`: JSON is
 * outdone only if it is so from both ends of the list. A named type does outdo a mere wildcard, as it does there.
 */
function preferredType(req: Request): string | false {
  const preferred = req.accepts(OFFERED)
  if (preferred === false || JSON_TYPES.includes(preferred)) return false
  const accept = req.headers.accept?.split(',').reverse().join(',')
  const reversed = Object.create(req, { headers: { value: { accept } } }) as Request
  return JSON_TYPES.includes(reversed.accepts(OFFERED) || '') ? false : preferred
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

/** Loads nothing from anywhere, and needs no style or script that a content security policy would have to allow. */
const htmlPage = (title: string, paragraph: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
</head>
<body>
<p>${escaped(paragraph)}</p>
</body>
</html>
`
