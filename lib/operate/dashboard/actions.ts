import type { Request, Response } from 'express'
import { ProblemDocument } from 'http-problem-details'
import { sendBadRequest, sendForbidden, sendProblem, sendUnavailable } from '../../http/problem.js'
import { checkSeconds } from '../../limiter/limiter-options.js'
import { fillOf } from './limit-record.js'
import type { ManagedLimits } from './managed-limits.js'
import { readJson } from './read-json.js'
import { hasToken } from './same-origin.js'

/** The longest key that is looked up, in UTF-16 units. */
const LONGEST_KEY = 16_384

/** Looks a key up in every limit, or in the one that is named: `GET api/find?key=…&limit=…`. */
export async function find(req: Request, res: Response, limits: ManagedLimits): Promise<void> {
  const { key, limit } = req.query
  if (!isKey(key)) return sendBadRequest(req, res, 'Give the key to look up, as in ?key=login:203.0.113.9')
  if (limit !== undefined && (typeof limit !== 'string' || !limits.has(limit))) return sendUnknown(req, res)
  await answer(req, res, async () => {
    const names = limit === undefined ? limits.names : [limit]
    const rows = await Promise.all(names.map((name) => rowOf(limits, name, key)))
    return { rows }
  })
}

/** Forgets what was counted of a key: `POST api/reset` with `{ limit, key }`. */
export async function reset(req: Request, res: Response, limits: ManagedLimits): Promise<void> {
  const order = await orderOf(req, res, limits)
  if (order === null) return
  await answer(req, res, async () => {
    await limits.reset(order.limit, order.key)
    return { row: await rowOf(limits, order.limit, order.key) }
  })
}

/** Denies everything on a key for a while: `POST api/block` with `{ limit, key, seconds }`. */
export async function block(req: Request, res: Response, limits: ManagedLimits): Promise<void> {
  const order = await orderOf(req, res, limits)
  if (order === null) return
  const { seconds } = order
  try {
    checkSeconds('seconds', seconds, 0.001)
  } catch (error) {
    return sendBadRequest(req, res, (error as TypeError).message)
  }
  await answer(req, res, async () => {
    await limits.block(order.limit, order.key, seconds as number)
    return { row: await rowOf(limits, order.limit, order.key) }
  })
}

interface Order {
  readonly limit: string
  readonly key: string
  readonly seconds: unknown
}

/** What a page of this origin asks for; anything else is answered, and null. */
async function orderOf(req: Request, res: Response, limits: ManagedLimits): Promise<Order | null> {
  if (!hasToken(req)) {
    sendForbidden(req, res, 'The token of the page is missing or has changed. Load the page again.')
    return null
  }
  const body = await readJson(req)
  if (res.headersSent || res.writableEnded) return null
  const { limit, key, seconds } = body ?? {}
  if (typeof limit !== 'string' || !isKey(key)) {
    sendBadRequest(req, res, 'Send a JSON object in which "limit" and "key" are texts.')
    return null
  }
  if (!limits.has(limit)) {
    sendUnknown(req, res)
    return null
  }
  return { limit, key, seconds }
}

async function rowOf(limits: ManagedLimits, limit: string, key: string) {
  const state = await limits.peek(limit, key)
  return { limit, key, denied: state?.denied ?? false, fill: state && fillOf(state, Date.now()) }
}

/** A store that fails is a 503, and nothing is told of why. */
async function answer(req: Request, res: Response, work: () => Promise<object>): Promise<void> {
  try {
    const body = await work()
    if (res.headersSent || res.writableEnded) return
    res.setHeader('Cache-Control', 'no-store')
    res.json(body)
  } catch {
    if (!res.headersSent && !res.writableEnded) sendUnavailable(req, res)
  }
}

const sendUnknown = (req: Request, res: Response): void =>
  sendProblem(req, res, new ProblemDocument({ status: 404, detail: 'There is no limit of that name here.' }))

const isKey = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_KEY
