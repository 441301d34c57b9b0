import type { Policy } from 'express-sql-rate-limit'
import fc from 'fast-check'
import { stopTime } from '../limiter/moving-time.js'
import {
  burst,
  type Form,
  LIMIT_LIST,
  type Limit,
  POLICY_LIST,
  parsed,
  policyOf,
  response,
  tell,
  tellOnce,
  told,
} from './telling.js'

describe('each form, to the letter', () => {
  beforeEach(stopTime)

  const oneOfFive: Limit = [burst, 1, 60]
  const lists = { 'ratelimit-policy': '"burst";q=5;w=60', ratelimit: '"burst";r=4;t=60' }
  const quotas = { 'ratelimit-policy': '5;w=60' }
  const three = { 'ratelimit-limit': '5', 'ratelimit-remaining': '4', 'ratelimit-reset': '60' }
  const legacy = {
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '4',
    'x-ratelimit-reset': '1767614460',
    date: 'Mon, 05 Jan 2026 12:00:00 GMT',
  }
  test.each<[string, Form, object]>([
    ['draft-11', { standardHeaders: 'draft-11' }, lists],
    ['draft-8', { standardHeaders: 'draft-8' }, lists],
    ['draft-7', { standardHeaders: 'draft-7' }, { ...quotas, ratelimit: 'limit=5, remaining=4, reset=60' }],
    ['draft-6', { standardHeaders: 'draft-6' }, { ...quotas, ...three }],
    ['legacy', { standardHeaders: false, legacyHeaders: true }, legacy],
    ['draft-11 with legacy', { legacyHeaders: true }, { ...lists, ...legacy }],
    [
      'draft-6 with legacy',
      { standardHeaders: 'draft-6', legacyHeaders: true },
      { ...quotas, ...three, ...legacy },
    ],
    ['nothing', { standardHeaders: false }, {}],
  ])('%s', (_, form, fields) => {
    expect(tellOnce([oneOfFive], form)).toEqual(fields)
  })

  const refused: Limit = [burst, 5, 42, 42]
  test.each<[string, Form, object]>([
    ['draft-11', {}, { 'ratelimit-policy': '"burst";q=5;w=60', ratelimit: '"burst";r=0;t=42' }],
    ['draft-7', { standardHeaders: 'draft-7' }, { ...quotas, ratelimit: 'limit=5, remaining=0, reset=42' }],
    [
      'draft-6',
      { standardHeaders: 'draft-6' },
      { ...quotas, ...three, 'ratelimit-remaining': '0', 'ratelimit-reset': '42' },
    ],
    [
      'legacy',
      { standardHeaders: false, legacyHeaders: true },
      { ...legacy, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1767614442' },
    ],
    ['nothing but Retry-After', { standardHeaders: false }, {}],
  ])('a denial in %s', (_, form, fields) => {
    expect(tellOnce([refused], form)).toEqual({ ...fields, 'retry-after': '42' })
  })

  test('the legacy reset is rounded up to a second, so that nobody comes early', () => {
    jest.setSystemTime(Date.now() + 1)
    const form = { standardHeaders: false, legacyHeaders: true } as const
    expect(tellOnce([oneOfFive], form)['x-ratelimit-reset']).toBe('1767614461')
  })
})

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
    ['quotes and backslashes escaped', { name: 'a"b\\c' }, String.raw`"a\"b\\c";q=100;w=60`],
  ])('has %s', (_, policy, field) => {
    expect(tellOnce([[policyOf(policy), 1, 1]])['ratelimit-policy']).toBe(field)
    expect(field).toMatch(POLICY_LIST)
    expect(parsed(field)).toHaveLength(1)
  })

  test('of drafts 6 and 7 has no policy without a window, which they require', () => {
    const half = policyOf({ limit: 9, windowSeconds: 1.5 })
    const fields = tellOnce([[half, 1, 1]], { standardHeaders: 'draft-6' })
    expect(fields).toEqual({ 'ratelimit-limit': '9', 'ratelimit-remaining': '8', 'ratelimit-reset': '2' })
  })

  test('of drafts 6 and 7 has one policy a quota, that of the longest window', () => {
    const limits = [60, 3600, 1].map((windowSeconds): Limit => [policyOf({ limit: 10, windowSeconds }), 1, 1])
    const res = tell(response(), [...limits, [burst, 1, 1]], { standardHeaders: 'draft-7' })
    expect(res.getHeader('RateLimit-Policy')).toBe('10;w=3600, 5;w=60')
    tell(res, [[policyOf({ limit: 5, windowSeconds: 86_400 }), 1, 1]], { standardHeaders: 'draft-7' })
    expect(res.getHeader('RateLimit-Policy')).toBe('10;w=3600, 5;w=86400')
  })
})

describe('RateLimit', () => {
  test.each<[string, Partial<Policy>, [used: number, reset: number, retry?: number], string]>([
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
    [
      'no more than the average rate on a denial that no waiting helps',
      {},
      [0, 0, Number.POSITIVE_INFINITY],
      '"default";r=100;t=60',
    ],
    [
      'nothing for a window of a limit of 0',
      { limit: 0 },
      [0, 0, Number.POSITIVE_INFINITY],
      '"default";r=0;t=60',
    ],
    ['nothing below zero when the limit was lowered', { limit: 5 }, [8, 9, 9], '"default";r=0;t=9'],
    [
      'whole seconds for a window of a millisecond',
      { windowSeconds: 0.001 },
      [1, 0.001],
      '"default";r=99;t=1',
    ],
  ])('has %s', (_, policy, state, field) => {
    expect(tellOnce([[policyOf(policy), ...state]]).ratelimit).toBe(field)
    expect(field).toMatch(LIMIT_LIST)
  })

  test('is valid, whole and never negative for whatever limit, window and use, and promises no more than the rate', () => {
    const windows = fc.oneof(
      fc.integer({ min: 1, max: 31_536_000 }),
      fc.double({ min: 0.001, max: 1000, noNaN: true }),
    )
    const names = fc.string({ unit: 'grapheme-ascii', maxLength: 64 })
    fc.assert(
      fc.property(
        names,
        fc.nat(1e12),
        windows,
        fc.nat(2e12),
        fc.boolean(),
        (name, limit, window, used, denied) => {
          const policy = policyOf({ name, limit, windowSeconds: window })
          const fields = tellOnce([[policy, used, window / 3, denied ? window / 2 : undefined]])
          expect(fields['ratelimit-policy']).toMatch(POLICY_LIST)
          expect(fields.ratelimit).toMatch(LIMIT_LIST)
          const [[told, { r, t }] = [undefined, {}]] = parsed(fields.ratelimit)
          expect(told).toBe(name)
          if (denied) expect(String(t)).toBe(fields['retry-after'])
          else expect((t as number) * limit).toBeGreaterThanOrEqual((r as number) * window * (1 - 1e-9))
        },
      ),
    )
  })

  test('has the same values in every form', () => {
    const limits: Limit[] = [[policyOf({ limit: 10_000, windowSeconds: 1000 }), 1, 1]]
    expect(tellOnce(limits, { standardHeaders: 'draft-7' }).ratelimit).toBe(
      'limit=10000, remaining=9999, reset=1000',
    )
    expect(tellOnce(limits, { standardHeaders: 'draft-6' })['ratelimit-reset']).toBe('1000')
  })
})

describe('what cannot be sent', () => {
  test.each([
    ['a name outside ASCII', { name: 'grüße' }],
    ['a name with a line break', { name: 'a\r\nSet-Cookie: x' }],
    ['more than 15 digits', { limit: 1e15 }],
    ['a limit that is no whole number', { limit: 1.5 }],
    ['a limit that is no number', { limit: Number.NaN }],
    ['a limit without end', { limit: Number.POSITIVE_INFINITY }],
  ])('is left out: %s', (_, policy) => {
    const broken: Limit = [policyOf(policy), 0.25, 1]
    expect(tellOnce([broken])).toEqual({})
    expect(tellOnce([[burst, 1, 60], broken])).toEqual({
      'ratelimit-policy': '"burst";q=5;w=60',
      ratelimit: '"burst";r=4;t=60',
    })
    for (const standardHeaders of ['draft-6', 'draft-7'] as const) {
      const fields = tellOnce([[burst, 1, 60], broken], { standardHeaders, legacyHeaders: true })
      expect(JSON.stringify(fields)).not.toMatch(/Cookie|NaN|Infinity|null|1\.5|\d{16}/)
    }
  })

  test('is left out of a denial, which still has its Retry-After and nothing of an earlier limiter', () => {
    const res = tell(response(), [[burst, 1, 60]])
    tell(res, [[policyOf({ name: 'grüße' }), 100, 12, 12]])
    expect(told(res)).toEqual({ 'ratelimit-policy': '"burst";q=5;w=60', 'retry-after': '12' })
  })
})
