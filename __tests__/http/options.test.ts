import type { Request } from 'express'
import {
  type Algorithm,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  type RateLimitOptions,
  rateLimit,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const createStore = () => new MemoryStore({ sweepSeconds: false })
const good = (): LimiterOptions => ({ store: createStore(), limit: 1, windowSeconds: 60 })

/** Values that are wrong for each option. Nothing of them may fall back to a default. Those of `window`: quotas.test.ts. */
const wrong: Record<Exclude<keyof LimiterOptions, 'hashKeys' | 'window'>, unknown[]> = {
  store: [undefined, null, 'mysql://localhost', {}, { decide() {} }, () => {}, { ...createStore() }],
  limit: [
    undefined,
    null,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e12 + 1,
    '100',
    100n,
    true,
    [100],
    {},
  ],
  windowSeconds: [
    ...[undefined, null, 0, -1, 0.0009, 31_536_001, Number.NaN, Number.POSITIVE_INFINITY],
    ...['60', 60n, true, [60], new Date()],
  ],
  name: [null, '', 'a b', 'läufer', 'a\nb', 'a"b', 'a:b', 'a/b', 'x'.repeat(65), 5, ['a'], Symbol('a')],
  algorithm: [null, '', 'sliding', 'fixed', 'Fixed-Window', 'token-bucket', 1, true, ['fixed-window']],
  onStoreError: [null, '', 'open', 'Local', 'Allow', true, false, ['allow']],
  timeoutMs: [null, 0, -1, 0.9, 60_001, Number.NaN, Number.POSITIVE_INFINITY, '250', 250n, true, [250]],
  localShare: [null, 0, -1, 1.5, 1_000_001, Number.NaN, Number.POSITIVE_INFINITY, '4', 4n, true, [4]],
  maxPending: [null, 0, -1, 1.5, 1_000_001, Number.NaN, Number.POSITIVE_INFINITY, '100', 100n, true, [100]],
  retainSeconds: [null, -1, 31_536_001, Number.NaN, Number.POSITIVE_INFINITY, '60', 60n, true, [60]],
  audit: [null, 0, 1, '', 'true', {}],
  logger: [null, 'console', true, {}, { log() {} }, { error: 'yes' }, () => {}],
  dryRun: [null, 0, 1, '', 'true', {}],
  onDecision: [null, 'log', 5, {}],
  onDenied: [null, 'log', 5, {}],
  onDegraded: [null, 'log', 5, {}],
  lease: [null, 0, 1, 2, 1.5, '10', 10n, true, [10]],
}
const wrongRequest: Record<string, unknown[]> = {
  cost: [null],
  skip: [null, true, '/health'],
  requestWasSuccessful: [null, 200, true],
  allowList: [null, '127.0.0.1', ['nonsense'], ['10.0.0.0/33'], [5]],
  denyList: [null, '127.0.0.1', ['nonsense'], ['::/129'], [5]],
  ipv6Subnet: [null, 0, 31, 129, 56.5, '56'],
  missingKey: [null, 'skip', true],
  skipSuccessfulRequests: [null, 1, 'yes'],
  skipFailedRequests: [null, 1, 'yes'],
  statusCode: [null, 200, 600, '429', 429.5],
  problemType: [null, '', 5, 'http://[::1'],
  requestPropertyName: [null, '', 5],
  standardHeaders: [null, true, 'draft-5', 8],
  legacyHeaders: [null, 1, 'yes'],
}
const wrongHttp: Record<'keyFn' | 'handler', unknown[]> = {
  keyFn: [null, 'ip', 5, {}, ['ip'], true],
  handler: [null, 'deny', 429, {}, true],
}

const rows = (table: Record<string, unknown[]>): [string, unknown][] =>
  Object.entries(table).flatMap(([name, values]) => values.map((value): [string, unknown] => [name, value]))

function expectRefusal(construct: () => unknown, name: string, value: unknown): void {
  expect(construct).toThrow(TypeError)
  const type = value === null ? 'null' : typeof value
  // Name, rule, value and type, on one line.
  expect(construct).toThrow(new RegExp(`^Expected \`${name}\` to be .+, got .+ \\(${type}\\)$`))
}

describe('a wrong option throws at construction, with its name, the rule, the value and its type', () => {
  test.each(rows(wrong))('`%s` of a middleware and of a limiter: %p', (name, value) => {
    const options = { ...good(), [name]: value }
    expectRefusal(() => rateLimit(options), name, value)
    expectRefusal(() => new Limiter(options), name, value)
  })

  test.each(rows(wrongRequest))('`%s` of a request: %p', (name, value) => {
    const construct = () => rateLimit({ ...good(), [name]: value } as never)
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(new RegExp(`\`${name}`))
  })

  test.each([null, 5, '', 'short', {}])('`hashKeys`, and its value is not repeated: %p', (value) => {
    const construct = () => rateLimit({ ...good(), hashKeys: value } as never)
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(/^Expected `hashKeys` to be a text of at least 16 characters/)
  })

  test.each(rows(wrongHttp))('`%s` of a middleware: %p', (name, value) => {
    expectRefusal(() => rateLimit({ ...good(), [name]: value }), name, value)
  })

  test('hazard 133: a name that no header can carry is refused before the first request', () => {
    for (const name of ['läufer', 'a\r\nSet-Cookie: b', '😀', '\0'])
      expect(() => rateLimit({ ...good(), name })).toThrow(TypeError)
  })

  test.each([
    ...['Limit', 'max', 'windowMs', 'windows', 'keyGenerator', 'passOnStoreError', 'mesage', 'keyfn'],
  ])('an unknown option throws too, and says what there is: `%s`', (name) => {
    const options = { ...good(), [name]: 5 }
    const message = new RegExp(`^Unknown option \`${name}\` of .*\\bwindowSeconds\\b`)
    for (const construct of [() => rateLimit(options), () => new Limiter(options)]) {
      expect(construct).toThrow(TypeError)
      expect(construct).toThrow(message)
    }
  })

  test('what concerns HTTP is unknown to a limiter', () => {
    for (const name of ['keyFn', 'handler'])
      expect(() => new Limiter({ ...good(), [name]: () => 'k' })).toThrow(TypeError)
  })

  test.each([undefined, null, 5, 'limit', true])('no options at all: %p', (options) => {
    for (const construct of [
      () => rateLimit(options as unknown as RateLimitOptions),
      () => new Limiter(options as unknown as LimiterOptions),
    ]) {
      expect(construct).toThrow(TypeError)
      expect(construct).toThrow(/options of .* to be an object, got /)
    }
  })

  test('a failed construction leaves the name free', () => {
    const store = createStore()
    expect(() => rateLimit({ store, limit: -1, windowSeconds: 60 })).toThrow(TypeError)
    expect(() => rateLimit({ store, limit: 1, windowSeconds: 60 })).not.toThrow()
  })
})

describe('a right option', () => {
  test.each<[string, unknown[]]>([
    ['limit', [0, 1, 1e12]],
    ['windowSeconds', [0.001, 1, 1.5, 31_536_000]],
    ['name', [undefined, 'a', 'aZ09._-', 'x'.repeat(64)]],
    ['algorithm', [undefined, 'sliding-window', 'fixed-window'] satisfies (Algorithm | undefined)[]],
    ['onStoreError', [undefined, 'allow', 'deny', 'local']],
    ['timeoutMs', [undefined, 1, 60_000, 0.5 + 1]],
    ['maxPending', [undefined, 1, 1_000_000]],
    ['retainSeconds', [undefined, 0, 0.5, 31_536_000]],
    ['audit', [undefined, true, false]],
    ['logger', [undefined, console, { error() {} }]],
    ['keyFn', [undefined, () => 'k', async () => 'k']],
    ['handler', [undefined, () => {}]],
  ])('of `%s` is taken', (name, values) => {
    for (const value of values) expect(() => rateLimit({ ...good(), [name]: value })).not.toThrow()
  })

  test('is read once, and nothing is written to it', () => {
    const options = Object.freeze({ ...good(), limit: 5, name: 'login' })
    const limiter = rateLimit(options)
    expect(limiter.store).toBe(options.store)
    expect(limiter.policies[0]).toMatchObject({
      name: 'login',
      limit: 5,
      windowSeconds: 60,
      algorithm: 'sliding-window',
    })
  })

  test('asks nothing of the store at construction', () => {
    const store = new WatchedStore()
    store.install = jest.fn()
    rateLimit({ ...good(), store })
    expect(store.install).not.toHaveBeenCalled()
    expect(store.batches).toEqual([])
  })
})

describe('hazard 129: two limiters on one store that would share the counters of addresses', () => {
  const store = createStore()
  const limits = { store, limit: 1, windowSeconds: 60 }
  rateLimit(limits)
  rateLimit({ ...limits, name: 'login' })

  test.each<[string, Partial<RateLimitOptions>]>([
    ['without names', {}],
    ['one of them with the default name written out', { name: 'default' }],
    ['of one name', { name: 'login' }],
    ['of one name and another limit', { name: 'login', limit: 5 }],
  ])('throw, %s', (_, options) => {
    const construct = () => rateLimit({ ...limits, ...options })
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(new RegExp(`\`name\` '${options.name ?? 'default'}'.*\`keyFn\``))
  })

  test.each<[string, Partial<RateLimitOptions>]>([
    ['names differ', { name: 'other' }],
    ['one has a keyFn', { keyFn: () => 'k' }],
    ['one of that name has a keyFn', { name: 'login', keyFn: () => 'k' }],
    ['the stores differ', { store: createStore() }],
  ])('do not throw when %s', (_, options) => {
    expect(() => rateLimit({ ...limits, ...options })).not.toThrow()
  })
})

describe.each(expressVersions)('keyFn on Express %s', (_, express) => {
  const limited = (keyFn: unknown, limit = 1) =>
    appWith(
      express,
      rateLimit({
        store: createStore(),
        limit,
        windowSeconds: 60,
        keyFn: keyFn as (req: Request) => string,
        logger: { error() {} },
      }),
    )
  const header = (req: Request): string => req.get('X-Key') ?? 'nobody'

  test.each([
    ['a text', header],
    ['a promise of a text', async (req: Request) => header(req)],
  ])('may return %s, and each key has its own count', async (_, keyFn) => {
    const app = limited(keyFn)
    const statuses: number[] = []
    for (const key of ['a', 'b', 'a', 'b'])
      statuses.push((await request(app).get('/').set('X-Key', key)).status)
    expect(statuses).toEqual([200, 200, 429, 429])
  })

  test('hazard 146: may return parts, which never collide with other parts', async () => {
    const app = limited((req: Request) => JSON.parse(header(req)))
    const send = async (key: unknown) =>
      (await request(app).get('/').set('X-Key', JSON.stringify(key))).status
    const keys = [
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a', 'b', 'c'],
      'a:b:c',
      ['a:b:c'],
      '["a:b:c"]',
      ['', 'a'],
      ['a', ''],
    ]
    for (const key of keys) expect(await send(key)).toBe(200)
    for (const key of keys) expect(await send(key)).toBe(429)
  })

  test('hazard 110: runs before anything is awaited', () => {
    const keyFn = jest.fn(() => 'k')
    const limiter = rateLimit({ ...good(), keyFn })
    const res = { getHeader() {}, setHeader() {} }
    void limiter({} as Request, res as never, () => {})
    expect(keyFn).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['an empty text', ''],
    ['undefined', undefined],
    ['null', null],
    ['a number', 42],
    ['an object', { id: 42 }],
    ['no parts', []],
    ['parts that are numbers', [1, 2]],
    ['a promise of undefined', Promise.resolve(undefined)],
  ])('that returns %s is an error for the application, and never lets a request through', async (_, key) => {
    const app = limited(() => key, 100)
    await request(app).get('/').expect(500)
    expect(app.errors).toEqual([expect.any(TypeError)])
    expect(app.handled).toEqual([])
  })

  const failure = new Error('no such user')
  test.each([
    [
      'throws',
      () => {
        throw failure
      },
    ],
    ['rejects', () => Promise.reject(failure)],
  ])('that %s is that error for the application, and never lets a request through', async (_, keyFn) => {
    const app = limited(keyFn, 100)
    await request(app).get('/').expect(500)
    expect(app.errors).toEqual([failure])
    expect(app.handled).toEqual([])
  })
})
