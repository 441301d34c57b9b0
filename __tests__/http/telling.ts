import { ServerResponse } from 'node:http'
import { type Decision, Limiter, MemoryStore, type Policy } from 'express-sql-rate-limit'
import { parseList } from 'structured-headers'
import { type HeaderOptions, setRateLimitHeaders } from '../../lib/http/headers.js'
import { decisionOf, limitStateOf } from '../../lib/limiter/decision.js'

const store = new MemoryStore({ sweepSeconds: false })
const { policy: minute } = new Limiter({ store, limit: 100, windowSeconds: 60 })
export const policyOf = (policy: Partial<Policy>): Policy => ({ ...minute, ...policy })

/** A limit's policy, what of it is used, and in seconds until it resets and until the hit may pass, if it is denied. */
export type Limit = readonly [policy: Policy, used: number, reset: number, retry?: number | undefined]

function stateOf([policy, used, reset, retry]: Limit) {
  const reading = { used, denied: retry !== undefined, resetMicros: reset * 1e6, at: 0, windowStart: 0 }
  return limitStateOf(policy, 'secret-key', { ...reading, retryMicros: (retry ?? 0) * 1e6 })
}

export const decide = (...limits: Limit[]): Decision => decisionOf(limits.map(stateOf))
export const response = () => new ServerResponse({ method: 'GET' } as never)

export type Form = Partial<HeaderOptions>

/** Tells of the decision of some limits. */
export function tell(res: ServerResponse, limits: readonly Limit[], form: Form = {}): ServerResponse {
  const policies = limits.map(([policy]) => policy)
  const options: HeaderOptions = { standardHeaders: 'draft-11', legacyHeaders: false, ...form }
  setRateLimitHeaders(res, policies, decide(...limits), options)
  return res
}

/** All that a response tells, by its field's name in small letters. */
export const told = (res: ServerResponse) => ({ ...res.getHeaders() })

/** Tells of one decision on a new response. */
export const tellOnce = (limits: readonly Limit[], form: Form = {}) => told(tell(response(), limits, form))

/** Names and parameters of a field, by a parser of RFC 9651, which rejects the whole field for any mistake in it. */
export const parsed = (field: unknown): [unknown, Record<string, unknown>][] =>
  parseList(String(field)).map(([item, parameters]) => [item, Object.fromEntries(parameters)])

// The grammar of draft 11, sections 3 and 4, in the canonical form of RFC 9651, and nothing looser.
const NAME = String.raw`"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"`
const listOf = (member: string) => new RegExp(`^${member}(?:, ${member})*$`)
export const POLICY_LIST = listOf(String.raw`${NAME};q=\d{1,15}(?:;w=[1-9]\d{0,14})?`)
export const LIMIT_LIST = listOf(String.raw`${NAME};r=\d{1,15};t=\d{1,15}`)

export const burst = policyOf({ name: 'burst', limit: 5, windowSeconds: 60 })
export const day = policyOf({ name: 'day', limit: 1000, windowSeconds: 86_400 })
