import { ServerResponse } from 'node:http'
import {
  type Decision,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  type Policy,
  rateLimit,
} from 'express-sql-rate-limit'
import fc from 'fast-check'
import { parseList } from 'structured-headers'
import request from 'supertest'
import { addToList, limitField, policyField, setRateLimitHeaders } from '../../lib/http/headers.js'
import { decisionOf } from '../../lib/limiter/decision.js'
import { stopTime } from '../limiter/moving-time.js'
import { appWith, expressVersions } from './serve.js'

const store = new MemoryStore({ sweepSeconds: false })
const { policy: minute } = new Limiter({ store, limit: 100, windowSeconds: 60 })
const policyOf = (policy: Partial<Policy>): Policy => ({ ...minute, ...policy })

/** The decision of a reading in seconds. */
function decide(policy: Policy, used: number, reset: number, retry?: number): Decision {
  const reading = {
    denied: retry !== undefined,
    used,
    retryMicros: (retry ?? 0) * 1_000_000,
    resetMicros: reset * 1_000_000,
    at: 0,
    windowStart: 0,
  }
  return decisionOf(policy, 'k', reading)
}

const response = () => new ServerResponse({ method: 'GET' } as never)

/** Names and parameters of a field, by a parser of RFC 9651, which rejects the whole field for any mistake in it. */
const parsed = (field: unknown): [unknown, Record<string, unknown>][] =>
  parseList(String(field)).map(([item, parameters]) => [item, Object.fromEntries(parameters)])

describe('RateLimit-Policy', () => {
  test.each<[string, Partial<Policy>, string]>([
    ['quota and window', { name: 'login', limit: 15, windowSeconds: 900 }, '"login";q=15;w=900'],
    ['a quota of nothing', { limit: 0 }, '"default";q=0;w=60'],
    [
      'the largest quota and window',
      { limit: 1e12, windowSeconds: 31_536_000 },
      '"default";q=1000000000000;w=31536000',
    ],
    ['no window that is no whole number of seconds', { windowSeconds: 1.5 }, '"default";q=100'],
    ['no window that is less than a second', { windowSeconds: 0.001 }, '"default";q=100'],
    ['every character a name may have', { name: 'aZ0._-' }, '"aZ0._-";q=100;w=60'],
  ])('has %s', (_, policy, field) => {
    expect(policyField(policyOf(policy))).toBe(field)
    expect(parsed(field)).toHaveLength(1)
  })
})

describe('RateLimit', () => {
  test.each<
    [string, Partial<Policy>, Parameters<typeof decide> extends [Policy, ...infer R] ? R : never, string]
  >([
    ['the whole window on an untouched key', {}, [1, 60], '"default";r=99;t=60'],
    ['the exact time when nothing is left', {}, [100, 12], '"default";r=0;t=12'],
    ['a time rounded up', {}, [100, 11.2], '"default";r=0;t=12'],
    [
      'no more than the average rate when much is left',
      { limit: 10_000, windowSeconds: 1000 },
      [1, 1],
      '"default";r=9999;t=1000',
    ],
    ['the exact time on a denial', {}, [100, 12, 12], '"default";r=0;t=12'],
    ['at least a second on a denial', {}, [100, 0.2, 0.2], '"default";r=0;t=1'],
    ['the exact time on a denial of a cost above what is left', {}, [95, 3, 7], '"default";r=5;t=7'],
    ['a time on a denial that no waiting helps', {}, [0, 0, Number.POSITIVE_INFINITY], '"default";r=100;t=0'],
    ['nothing below zero when the limit was lowered', { limit: 5 }, [8, 9, 9], '"default";r=0;t=9'],
    [
      'whole seconds for a window of a millisecond',
      { windowSeconds: 0.001 },
      [1, 0.001],
      '"default";r=99;t=1',
    ],
  ])('has %s', (_, policy, decision, field) => {
    const whole = policyOf(policy)
    expect(limitField(whole, decide(whole, ...decision))).toBe(field)
  })

  test('is left out when the store did not answer', () => {
    const decision = { outcome: 'degraded', allowed: true } as Decision
    expect(limitField(minute, decision)).toBeNull()
  })

  test('is valid, whole and never negative for whatever limit, window and use, and promises no more than the rate', () => {
    const windows = fc.oneof(
      fc.integer({ min: 1, max: 31_536_000 }),
      fc.double({ min: 0.001, max: 1000, noNaN: true }),
    )
    fc.assert(
      fc.property(fc.nat(1e12), windows, fc.nat(2e12), fc.boolean(), (limit, windowSeconds, used, denied) => {
        const policy = policyOf({ limit, windowSeconds })
        const decision = decide(policy, used, windowSeconds / 3, denied ? windowSeconds / 2 : undefined)
        const [[name, { r, t }] = [undefined, {}]] = parsed(limitField(policy, decision))
        expect(name).toBe('default')
        expect([r, t].every((value) => Number.isSafeInteger(value) && (value as number) >= 0)).toBe(true)
        if (denied) expect(t).toBe(decision.retryAfterSeconds)
        else expect((t as number) * limit).toBeGreaterThanOrEqual((r as number) * windowSeconds * (1 - 1e-9))
      }),
    )
  })
})

describe('a field of several limiters', () => {
  test('is one list, in the order of the limiters', () => {
    const res = response()
    addToList(res, 'RateLimit', '"a";r=1')
    addToList(res, 'RateLimit', '"b";r=2')
    expect(res.getHeader('RateLimit')).toBe('"a";r=1, "b";r=2')
  })

  test('keeps what another middleware set, also as several lines', () => {
    const res = response()
    res.setHeader('RateLimit', ['"x";r=1', '"y";r=2'])
    addToList(res, 'ratelimit', '"a";r=3')
    expect(parsed(res.getHeader('RateLimit')).map(([name]) => name)).toEqual(['x', 'y', 'a'])
  })

  test('has only the violated policy in RateLimit after a denial, and all in RateLimit-Policy', () => {
    const res = response()
    setRateLimitHeaders(res, policyOf({ name: 'day' }), decide(minute, 1, 60))
    setRateLimitHeaders(res, policyOf({ name: 'burst' }), decide(minute, 100, 12, 12))
    expect(res.getHeader('RateLimit')).toBe('"burst";r=0;t=12')
    expect(parsed(res.getHeader('RateLimit-Policy')).map(([name]) => name)).toEqual(['day', 'burst'])
  })

  test('keeps the others when one limiter’s store did not answer', () => {
    const res = response()
    setRateLimitHeaders(res, policyOf({ name: 'day' }), decide(minute, 1, 60))
    setRateLimitHeaders(res, policyOf({ name: 'down' }), { outcome: 'degraded' } as Decision)
    expect(res.getHeader('RateLimit')).toBe('"day";r=99;t=60')
    expect(parsed(res.getHeader('RateLimit-Policy')).map(([name]) => name)).toEqual(['day', 'down'])
  })
})

describe.each(expressVersions)('on Express %s', (_, express) => {
  beforeEach(stopTime)

  const limits: Partial<LimiterOptions>[] = [
    { name: 'burst', limit: 3, windowSeconds: 20 },
    { name: 'minute', limit: 5, windowSeconds: 60 },
  ]
  const create = () => {
    const store = new MemoryStore({ sweepSeconds: false })
    return limits.map((limit) => rateLimit({ store, limit: 1, windowSeconds: 1, ...limit }))
  }

  test('hazard 129: two limiters of one store on a route are both exact, and both are told', async () => {
    const app = appWith(express, ...create())
    const first = await request(app).get('/')
    expect(first.headers['ratelimit-policy']).toBe('"burst";q=3;w=20, "minute";q=5;w=60')
    expect(first.headers.ratelimit).toBe('"burst";r=2;t=20, "minute";r=4;t=60')
    await request(app).get('/')
    await request(app).get('/')
    const denied = await request(app).get('/')
    expect(denied.status).toBe(429)
    expect(denied.headers.ratelimit).toBe('"burst";r=0;t=20')
    expect(denied.headers['ratelimit-policy']).toBe('"burst";q=3;w=20')
    expect(app.handled).toHaveLength(3)
  })

  test('a denial by the second limiter leaves the first one out of RateLimit and in RateLimit-Policy', async () => {
    const app = appWith(express, ...create().reverse())
    for (let i = 0; i < 3; i += 1) await request(app).get('/')
    const denied = await request(app).get('/')
    expect(denied.headers.ratelimit).toBe('"burst";r=0;t=20')
    expect(denied.headers['ratelimit-policy']).toBe('"minute";q=5;w=60, "burst";q=3;w=20')
    expect(denied.body['violated-policies']).toEqual(['burst'])
  })
})
