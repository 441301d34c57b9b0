import type { RequestHandler } from 'express'
import { type Decision, MemoryStore, rateLimit, StoreError } from 'express-sql-rate-limit'
import { parseDictionary } from 'structured-headers'
import request from 'supertest'
import { type HeaderOptions, setRateLimitHeaders } from '../../lib/http/headers.js'
import { degradedDecision, dryRunDecision } from '../../lib/limiter/decision.js'
import { stopTime } from '../limiter/moving-time.js'
import { appWith, expressVersions } from './serve.js'
import {
  burst,
  day,
  decide,
  type Form,
  LIMIT_LIST,
  type Limit,
  parsed,
  policyOf,
  response,
  tell,
  tellOnce,
  told,
} from './telling.js'

const degraded = (allowed: boolean): Decision =>
  degradedDecision(burst, 'secret-key', allowed, new StoreError('ERR_STORE_CONNECTION', 'secret'))

describe('a decision of several limits', () => {
  const allowed: Limit[] = [
    [burst, 2, 40],
    [day, 900, 5000],
  ]
  const half: Limit[] = [
    [burst, 5, 12, 12],
    [day, 900, 5000],
  ]

  test('lists all of them while they allow', () => {
    const fields = tellOnce(allowed)
    expect(fields['ratelimit-policy']).toBe('"burst";q=5;w=60, "day";q=1000;w=86400')
    expect(fields.ratelimit).toBe('"burst";r=3;t=40, "day";r=100;t=8640')
    expect(fields.ratelimit).toMatch(LIMIT_LIST)
    expect(fields).not.toHaveProperty('retry-after')
  })

  test('lists the violated ones on a denial, and every policy', () => {
    const fields = tellOnce(half)
    expect(fields['ratelimit-policy']).toBe('"burst";q=5;w=60, "day";q=1000;w=86400')
    expect(fields.ratelimit).toBe('"burst";r=0;t=12')
    expect(fields['retry-after']).toBe('12')
  })

  test('has the longest wait in Retry-After, which is earlier than no t', () => {
    const fields = tellOnce([
      [burst, 5, 12, 12],
      [day, 1000, 5000, 5000],
    ])
    expect(fields.ratelimit).toBe('"burst";r=0;t=12, "day";r=0;t=5000')
    expect(fields['retry-after']).toBe('5000')
  })

  test('has no Retry-After when one of them never lets the hit pass', () => {
    const fields = tellOnce([
      [burst, 0, 0, Number.POSITIVE_INFINITY],
      [day, 1000, 5000, 5000],
    ])
    expect(fields).not.toHaveProperty('retry-after')
    expect(fields.ratelimit).toBe('"burst";r=5;t=60, "day";r=0;t=5000')
  })

  test.each<[string, Limit[], string]>([
    [
      'the lowest remaining',
      [
        [day, 900, 5000],
        [burst, 2, 40],
      ],
      'limit=5, remaining=3, reset=40',
    ],
    [
      'of equal ones the longest reset',
      [
        [burst, 5, 40],
        [day, 1000, 5000],
        [policyOf({ limit: 7 }), 7, 50],
      ],
      'limit=1000, remaining=0, reset=5000',
    ],
    [
      'on a denial the longest wait, whatever is left of it',
      [
        [burst, 5, 12, 12],
        [day, 990, 60, 900],
        [policyOf({ limit: 9 }), 9, 9999],
      ],
      'limit=1000, remaining=10, reset=900',
    ],
    [
      'on a denial the one that never lets it pass',
      [
        [day, 1000, 5000, 5000],
        [burst, 0, 0, Number.POSITIVE_INFINITY],
      ],
      'limit=5, remaining=5, reset=60',
    ],
  ])('tells, in a form without lists, %s', (_, limits, field) => {
    expect(tellOnce(limits, { standardHeaders: 'draft-7' }).ratelimit).toBe(field)
    const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
      String(parseDictionary(field).get(name)?.[0]),
    )
    expect(tellOnce(limits, { standardHeaders: 'draft-6' })).toMatchObject({
      'ratelimit-limit': limit,
      'ratelimit-remaining': remaining,
      'ratelimit-reset': reset,
    })
    expect(tellOnce(limits, { standardHeaders: false, legacyHeaders: true })).toMatchObject({
      'x-ratelimit-limit': limit,
      'x-ratelimit-remaining': remaining,
    })
  })

  test('that is only tried out lets no client wait, and hides no other limiter', () => {
    const res = tell(response(), [[policyOf({ name: 'first' }), 1, 60]])
    setRateLimitHeaders(res, [burst, day], dryRunDecision(decide(...half)), {
      standardHeaders: 'draft-11',
      legacyHeaders: false,
    })
    expect(res.getHeader('Retry-After')).toBeUndefined()
    expect(res.getHeader('RateLimit')).toBe('"first";r=99;t=60, "burst";r=0;t=12, "day";r=100;t=8640')
  })
})

describe('several limiters on a route', () => {
  test('make one list, in their order', () => {
    const res = tell(tell(response(), [[day, 1, 60]]), [[burst, 1, 60]])
    expect(res.getHeader('RateLimit-Policy')).toBe('"day";q=1000;w=86400, "burst";q=5;w=60')
    expect(res.getHeader('RateLimit')).toBe('"day";r=999;t=86314, "burst";r=4;t=60')
  })

  test('keep what another middleware set, also as several lines or in another spacing', () => {
    const res = response()
    res.setHeader('ratelimit', ['"x"; r=1; t=2; pk=:YWJj:', '"y";r=2'])
    tell(res, [[burst, 1, 60]])
    expect(res.getHeader('RateLimit')).toBe('"x";r=1;t=2;pk=:YWJj:, "y";r=2, "burst";r=4;t=60')
  })

  test.each([
    ['is broken', '"x";r=1,,'],
    ['is in another form', 'limit=5, remaining=4, reset=60'],
    ['has members that are no names', '5;w=60'],
    ['is no list of items', '("x" "y")'],
  ])('replace a field that %s, which would void theirs', (_, before) => {
    const res = response()
    res.setHeader('RateLimit', before)
    res.setHeader('RateLimit-Policy', before)
    tell(res, [[burst, 1, 60]])
    expect(told(res)).toEqual({ 'ratelimit-policy': '"burst";q=5;w=60', ratelimit: '"burst";r=4;t=60' })
  })

  test.each(['draft-7', 'draft-6'] as const)(
    'of which the later one is told in %s make a valid field',
    (later) => {
      const res = tell(tell(response(), [[day, 1, 60]]), [[burst, 1, 60]], { standardHeaders: later })
      expect(res.getHeader('RateLimit-Policy')).toBe('5;w=60')
      if (later === 'draft-7') expect(res.getHeader('RateLimit')).toBe('limit=5, remaining=4, reset=60')
    },
  )

  describe('in a form without lists', () => {
    beforeEach(stopTime)

    test.each([
      ['the first', [[burst, 3, 60]], [[day, 1, 60]], ['5', '2', '60']],
      ['the second', [[day, 1, 60]], [[burst, 3, 60]], ['5', '2', '60']],
      [
        'of equal ones the first when it resets later',
        [[day, 1000, 90]],
        [[burst, 5, 12]],
        ['1000', '0', '90'],
      ],
      [
        'of equal ones the second when it resets later',
        [[burst, 5, 12]],
        [[day, 1000, 90]],
        ['1000', '0', '90'],
      ],
      ['the one that denies', [[burst, 5, 50]], [[day, 995, 9, 7]], ['1000', '5', '7']],
    ] as [string, Limit[], Limit[], string[]][])(
      'tell the lowest: %s',
      (_, first, second, [limit, remaining, reset]) => {
        const both = (form: Form) => told(tell(tell(response(), first, form), second, form))
        expect(both({ standardHeaders: 'draft-7' }).ratelimit).toBe(
          `limit=${limit}, remaining=${remaining}, reset=${reset}`,
        )
        expect(both({ standardHeaders: 'draft-6' })).toMatchObject({
          'ratelimit-limit': limit,
          'ratelimit-remaining': remaining,
          'ratelimit-reset': reset,
        })
        expect(both({ standardHeaders: false, legacyHeaders: true })).toMatchObject({
          'x-ratelimit-limit': limit,
          'x-ratelimit-remaining': remaining,
          'x-ratelimit-reset': String(Date.UTC(2026, 0, 5, 12) / 1000 + Number(reset)),
        })
        expect(both({ standardHeaders: 'draft-6' })['ratelimit-policy']).toMatch(/^\d+;w=\d+, \d+;w=\d+$/)
      },
    )

    test('do not trust what is no number', () => {
      const res = response()
      res.setHeader('RateLimit-Remaining', 'none')
      res.setHeader('RateLimit', 'remaining="0"')
      tell(res, [[burst, 1, 60]], { standardHeaders: 'draft-6' })
      expect(res.getHeader('RateLimit-Remaining')).toBe('4')
    })
  })

  test.each<[string, Form]>([
    ['in the same form', {}],
    ['in another form', { standardHeaders: 'draft-6' }],
    ['without headers', { standardHeaders: false }],
  ])('leave nothing of those that allowed once one denies, %s', (_, form) => {
    const res = tell(response(), [[policyOf({ name: 'other' }), 1, 60]], { legacyHeaders: true })
    tell(res, [[burst, 5, 12, 12]], form)
    expect(JSON.stringify({ ...told(res), 'ratelimit-policy': '' })).not.toContain('99')
    expect(res.getHeader('X-RateLimit-Limit')).toBeUndefined()
    expect(res.getHeader('Retry-After')).toBe('12')
  })
})

describe('a store that did not answer', () => {
  test.each<[string, Form, object]>([
    ['draft-11', { legacyHeaders: true }, { 'ratelimit-policy': '"burst";q=5;w=60' }],
    ['draft-6', { standardHeaders: 'draft-6' }, { 'ratelimit-policy': '5;w=60' }],
    ['nothing', { standardHeaders: false, legacyHeaders: true }, {}],
  ])('leaves the policy alone to tell, in %s', (_, form, fields) => {
    const options: HeaderOptions = { standardHeaders: 'draft-11', legacyHeaders: false, ...form }
    const [passed, refused] = [response(), response()]
    setRateLimitHeaders(passed, [burst], degraded(true), options)
    setRateLimitHeaders(refused, [burst], degraded(false), options)
    expect(told(passed)).toEqual(fields)
    expect(told(refused)).toEqual({ ...fields, 'retry-after': '5' })
  })

  test('leaves what earlier limiters told', () => {
    const res = tell(response(), [[day, 1, 60]])
    setRateLimitHeaders(res, [burst], degraded(true), { standardHeaders: 'draft-11', legacyHeaders: false })
    expect(res.getHeader('RateLimit')).toBe('"day";r=999;t=86314')
    expect(parsed(res.getHeader('RateLimit-Policy')).map(([name]) => name)).toEqual(['day', 'burst'])
  })
})

describe.each(expressVersions)('on Express %s', (_, express) => {
  beforeEach(stopTime)

  /** A middleware that tells, and lets everything through. */
  const telling = (limits: Limit[], form: Form): RequestHandler =>
    function telling(_req, res, next) {
      tell(res, limits, form)
      next()
    }

  test.each<[string, Form, Record<string, string>]>([
    ['draft-11', {}, { ratelimit: '"burst";r=4;t=60, "day";r=999;t=86314' }],
    ['draft-8', { standardHeaders: 'draft-8' }, { ratelimit: '"burst";r=4;t=60, "day";r=999;t=86314' }],
    ['draft-7', { standardHeaders: 'draft-7' }, { ratelimit: 'limit=5, remaining=4, reset=60' }],
    ['draft-6', { standardHeaders: 'draft-6' }, { 'ratelimit-policy': '5;w=60, 1000;w=86400' }],
    ['legacy', { legacyHeaders: true }, { date: 'Mon, 05 Jan 2026 12:00:00 GMT' }],
  ])('two limiters arrive at the client as one field in %s', async (_, form, fields) => {
    const app = appWith(express, telling([[burst, 1, 60]], form), telling([[day, 1, 60]], form))
    const { headers } = await request(app).get('/').expect(200)
    expect(headers).toMatchObject(fields)
  })

  const create = () => {
    const store = new MemoryStore({ sweepSeconds: false })
    return [
      rateLimit({ store, name: 'burst', limit: 3, windowSeconds: 20 }),
      rateLimit({ store, name: 'minute', limit: 5, windowSeconds: 60 }),
    ]
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
