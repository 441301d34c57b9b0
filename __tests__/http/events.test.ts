import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  type DecisionHook,
  type DecisionMessage,
  MemoryStore,
  type RateLimitOptions,
  rateLimit,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { failures, WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 1,
    windowSeconds: 60,
    timeoutMs: 60_000,
    logger: { error() {} },
    ...options,
  })

function downStore(): WatchedStore {
  const store = new WatchedStore()
  store.before = failures[0]?.[1] as () => unknown
  return store
}

const hooks = ['onDecision', 'onDenied', 'onDegraded'] as const
const recorders = () => ({ onDecision: jest.fn(), onDenied: jest.fn(), onDegraded: jest.fn() })
const outcomes = (hook: jest.Mock): string[] => hook.mock.calls.map(([decision]) => decision.outcome)

describe.each(expressVersions)('on Express %s', (_, express) => {
  describe('hooks', () => {
    test('are called once with each decision of their kind, and with the request', async () => {
      const told = recorders()
      const app = appWith(express, create(told))
      await request(app).get('/a').expect(200)
      await request(app).get('/b').expect(429)
      expect(outcomes(told.onDecision)).toEqual(['allowed', 'denied'])
      expect(outcomes(told.onDenied)).toEqual(['denied'])
      expect(outcomes(told.onDegraded)).toEqual([])
      const [decision, req] = told.onDecision.mock.calls[0]
      expect(req).toBe(app.handled[0])
      expect(decision).toBe(app.handled[0]?.rateLimit)
      expect(told.onDenied.mock.calls[0][1].url).toBe('/b')
    })

    test.each(['allow', 'deny'] as const)(
      'are told of a store that is down (onStoreError "%s")',
      async (onStoreError) => {
        const told = recorders()
        const app = appWith(express, create({ ...told, store: downStore(), onStoreError }))
        await request(app).get('/')
        expect(outcomes(told.onDecision)).toEqual(['degraded'])
        expect(outcomes(told.onDenied)).toEqual([])
        expect(told.onDegraded.mock.calls[0][0]).toMatchObject({
          outcome: 'degraded',
          allowed: onStoreError === 'allow',
          error: { code: 'ERR_STORE_CONNECTION' },
        })
      },
    )

    test('hazard 158: are told of a denial from memory, too', async () => {
      const store = new WatchedStore()
      const told = recorders()
      const app = appWith(express, create({ ...told, store, limit: 0 }))
      for (let i = 0; i < 3; i += 1) await request(app).get('/').expect(429)
      expect(told.onDenied).toHaveBeenCalledTimes(3)
    })

    test('are told of hits without a request', async () => {
      const told = recorders()
      const limiter = create(told)
      await limiter.hit('k')
      await limiter.hit('k')
      expect(told.onDecision.mock.calls.map(([, req]) => req)).toEqual([undefined, undefined])
      expect(told.onDenied).toHaveBeenCalledTimes(1)
    })

    test('are told nothing of a peek, of a skipped request, nor of one that an address list decides', async () => {
      const told = recorders()
      await create(told).peek('k')
      await request(appWith(express, create({ ...told, skip: () => true })))
        .get('/')
        .expect(200)
      const everybody = ['0.0.0.0/0', '::/0']
      await request(appWith(express, create({ ...told, allowList: everybody })))
        .get('/')
        .expect(200)
      await request(appWith(express, create({ ...told, denyList: everybody })))
        .get('/')
        .expect(403)
      for (const hook of Object.values(told)) expect(hook).not.toHaveBeenCalled()
    })

    const bad: [string, DecisionHook][] = [
      [
        'throws',
        () => {
          throw new Error('metrics are down')
        },
      ],
      ['rejects', () => Promise.reject(new Error('metrics are down'))],
      ['never settles', () => new Promise(() => {})],
      [
        'throws undefined',
        () => {
          throw undefined
        },
      ],
      [
        'gives an object whose `then` throws',
        () =>
          Object.defineProperty({}, 'then', {
            get() {
              throw new Error('then')
            },
          }),
      ],
    ]
    test.each(bad)('one that %s changes no answer, and keeps no other from being told', async (_, hook) => {
      const app = appWith(express, create({ onDecision: hook, onDenied: hook }))
      await request(app).get('/').expect(200)
      await request(app).get('/').expect(429)
      const onDegraded = jest.fn()
      const degraded = create({ onDecision: hook, onDegraded, store: downStore(), onStoreError: 'deny' })
      await request(appWith(express, degraded)).get('/').expect(503)
      const degradedBadly = create({ onDegraded: hook, store: downStore(), onStoreError: 'deny' })
      await request(appWith(express, degradedBadly)).get('/').expect(503)
      expect(onDegraded).toHaveBeenCalledTimes(1)
      expect(app.errors).toEqual([])
    })

    test.each(hooks)('%s is called before the request goes on', async (name) => {
      const order: string[] = []
      const options = { [name]: () => order.push('hook') }
      const limiter = create({
        ...options,
        limit: name === 'onDecision' ? 1 : 0,
        ...(name === 'onDegraded' && { store: downStore(), onStoreError: 'deny' as const }),
        handler: (_req, _res, next) => next(),
      })
      const app = appWith(express, limiter, (_req, _res, next) => {
        order.push('application')
        next()
      })
      await request(app).get('/').expect(200)
      expect(order).toEqual(['hook', 'application'])
    })
  })

  describe('diagnostics channels', () => {
    const messages = { decision: [] as DecisionMessage[], 'store-error': [] as DecisionMessage[] }
    const onDecision = (message: unknown) => messages.decision.push(message as DecisionMessage)
    const onStoreError = (message: unknown) => messages['store-error'].push(message as DecisionMessage)

    beforeEach(() => {
      messages.decision = []
      messages['store-error'] = []
      subscribe('express-sql-rate-limit:decision', onDecision)
      subscribe('express-sql-rate-limit:store-error', onStoreError)
    })
    afterEach(() => {
      unsubscribe('express-sql-rate-limit:decision', onDecision)
      unsubscribe('express-sql-rate-limit:store-error', onStoreError)
    })

    test('tell every decision of every limiter, with its request', async () => {
      const store = new MemoryStore({ sweepSeconds: false })
      const app = appWith(express, create({ store, name: 'a', limit: 5 }), create({ store, name: 'b' }))
      await request(app).get('/').expect(200)
      await request(app).get('/').expect(429)
      expect(messages.decision.map(({ decision: { policy, outcome } }) => [policy, outcome])).toEqual([
        ['a', 'allowed'],
        ['b', 'allowed'],
        ['a', 'allowed'],
        ['b', 'denied'],
      ])
      expect(messages.decision[0]?.request).toBe(app.handled[0])
      expect(messages.decision[0]?.store).toBe(store)
      expect(messages['store-error']).toEqual([])
    })

    test('tell a store that fails on both', async () => {
      const store = downStore()
      await request(appWith(express, create({ store })))
        .get('/')
        .expect(200)
      const decision = expect.objectContaining({ outcome: 'degraded' })
      const told = { decision, request: expect.anything(), store, milliseconds: expect.any(Number) }
      expect(messages).toEqual({ decision: [told], 'store-error': [told] })
    })

    test('tell how long a decision took, with the store and from memory', async () => {
      const store = new WatchedStore()
      store.before = () => new Promise((resolve) => setTimeout(resolve, 200))
      const app = appWith(express, create({ store }))
      for (const status of [200, 429, 429]) await request(app).get('/').expect(status)
      const [admitted, denied, remembered] = messages.decision.map(({ milliseconds }) => milliseconds)
      expect(admitted).toBeGreaterThan(190)
      expect(denied).toBeGreaterThan(190)
      expect(remembered).toBeLessThan(190)
      expect(remembered).toBeGreaterThan(0)
    })

    test('tell nothing once nobody listens', async () => {
      unsubscribe('express-sql-rate-limit:decision', onDecision)
      await request(appWith(express, create())).get('/').expect(200)
      expect(messages.decision).toEqual([])
    })
  })
})
