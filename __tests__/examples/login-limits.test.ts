import { setTimeout as pause } from 'node:timers/promises'
import type { Express, RequestHandler } from 'express'
import { Limiter, MemoryStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { loginLimits } from '../../examples/login-limits.js'

const OWNER = '198.51.100.7'

describe.each(['express', 'express4'])('examples/login-limits.ts on %s', (framework) => {
  const START = Date.UTC(2026, 0, 1)
  let now = START
  let store: MemoryStore

  beforeEach(() => {
    now = START
    store = new MemoryStore({ clock: () => now })
  })

  afterEach(() => store.close())

  function createApp(underAttack?: RequestHandler): Express {
    const express = jest.requireActual<typeof import('express')>(framework)
    const app = express()
    app.set('trust proxy', 1)
    const login: RequestHandler = (req, res) => {
      res.sendStatus(req.body?.password === 'right' ? 200 : 401)
    }
    app.post('/login', express.json({ limit: '2kb' }), loginLimits(store, { underAttack }), login)
    return app
  }

  const post = (app: Express, address: string, body?: object) =>
    request(app).post('/login').set('X-Forwarded-For', address).send(body)
  const fail = (app: Express, address: string, user: string) =>
    post(app, address, { user, password: 'guess' })
  const succeed = (app: Express, address: string, user: string) =>
    post(app, address, { user, password: 'right' })

  /** What is counted of a key under one of the limits. */
  async function usedOf(name: string, key: string | string[]): Promise<number | null> {
    return (await new Limiter({ store, name, limit: 1000, windowSeconds: 900 }).peek(key)).used
  }

  /** Hits are given back after the response was sent. */
  async function untilUsed(name: string, key: string | string[], expected: number): Promise<void> {
    for (let i = 0; i < 100 && (await usedOf(name, key)) !== expected; i += 1) {
      await pause(10)
    }
    expect(await usedOf(name, key)).toBe(expected)
  }

  /** Denials are remembered for up to a second, on the process's own clock. */
  async function passWindow(): Promise<void> {
    now += 900_001
    await pause(1_100)
  }

  /** A hundred failures on one account, five from each of twenty networks. */
  async function attack(app: Express, user: string): Promise<void> {
    for (let i = 0; i < 100; i += 1) await fail(app, `203.0.113.${i % 20}`, user).expect(401)
  }

  test('five failures lock a network out of the account, the right password too, for the window', async () => {
    const app = createApp()
    for (let i = 0; i < 5; i += 1) await fail(app, '203.0.113.1', 'alice').expect(401)
    const denied = await succeed(app, '203.0.113.1', 'alice').expect(429)
    expect(denied.headers['retry-after']).toBe('900')
    expect(denied.body['violated-policies']).toEqual(['login-account-network'])
    await passWindow()
    await succeed(app, '203.0.113.1', 'alice').expect(200)
  })

  test('and lock out nobody else: not that network elsewhere, nor the owner, whose hit is given back', async () => {
    const app = createApp()
    for (let i = 0; i < 5; i += 1) await fail(app, '203.0.113.1', 'alice').expect(401)
    for (let i = 0; i < 3; i += 1) await fail(app, '203.0.113.1', 'alice').expect(429)
    // A refused attempt is charged to neither limit.
    expect(await usedOf('login-address', '203.0.113.1')).toBe(5)
    await succeed(app, '203.0.113.1', 'bob').expect(200)

    // More often than any limit allows failures.
    for (let i = 0; i < 35; i += 1) {
      await succeed(app, OWNER, 'alice').expect(200)
      await untilUsed('login-address', OWNER, 0)
      await untilUsed('login-account-network', ['alice', OWNER], 0)
      await untilUsed('login-account', 'alice', 5)
    }
  })

  test('an IPv6 client is its /56, and an account has one spelling', async () => {
    const app = createApp()
    const spellings = ['alice', 'Alice', ' ALICE ', 'al\u200bice', 'ａｌｉｃｅ']
    for (const [i, user] of spellings.entries()) await fail(app, `2001:db8::${i + 1}`, user).expect(401)
    await fail(app, '2001:db8:0:ff::9', 'alice').expect(429)
    await fail(app, '2001:db8:0:100::9', 'alice').expect(401)
  })

  test('thirty failures on many accounts lock out their address, and no other', async () => {
    const app = createApp()
    for (let i = 0; i < 30; i += 1) await fail(app, '203.0.113.1', `user-${i}`).expect(401)
    const { body } = await fail(app, '203.0.113.1', 'user-30').expect(429)
    expect(body['violated-policies']).toEqual(['login-address'])
    expect(await usedOf('login-account-network', ['user-30', '203.0.113.1'])).toBe(0)
    await fail(app, '203.0.113.2', 'user-30').expect(401)
  })

  test('hazard 149: a hundred failures from many networks ask for more, of the owner too, and never deny him', async () => {
    const underAttack = jest.fn<void, Parameters<RequestHandler>>((req, res, next) => {
      if (req.get('X-Captcha') === 'solved') next()
      else res.sendStatus(403)
    })
    const app = createApp(underAttack)
    await attack(app, 'alice')
    expect(underAttack).not.toHaveBeenCalled()

    await fail(app, '203.0.113.99', 'alice').expect(403)
    await succeed(app, OWNER, 'alice').expect(403)
    for (let i = 0; i < 10; i += 1) {
      const { headers } = await succeed(app, OWNER, 'alice').set('X-Captcha', 'solved').expect(200)
      // Nothing tells a stranger that the account is under attack.
      expect(JSON.stringify(headers)).not.toContain('"login-account\\"')
      // The one that is left is the captcha he did not solve.
      await untilUsed('login-account-network', ['alice', OWNER], 1)
    }
    expect(underAttack).toHaveBeenCalledTimes(12)

    await succeed(app, OWNER, 'bob').expect(200)
    await passWindow()
    await succeed(app, OWNER, 'alice').expect(200)
    expect(underAttack).toHaveBeenCalledTimes(12)
  })

  test('without underAttack the owner just gets in', async () => {
    const app = createApp()
    await attack(app, 'alice')
    await fail(app, '203.0.113.99', 'alice').expect(401)
    await succeed(app, OWNER, 'alice').expect(200)
  })

  test('a body without a user counts', async () => {
    const app = createApp()
    for (const body of [undefined, {}, { user: '' }, { user: 7 }, { user: ['alice'] }]) {
      await post(app, '203.0.113.1', body).expect(401)
    }
    expect(await usedOf('login-address', '203.0.113.1')).toBe(5)
    const { body } = await post(app, '203.0.113.1', {}).expect(429)
    expect(body['violated-policies']).toEqual(['login-account-network'])
    await fail(app, '203.0.113.1', 'alice').expect(401)
  })

  test('a store that is down gives no free guesses', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation(() => {})
    const app = createApp()
    await store.close()
    await succeed(app, OWNER, 'alice').expect(503)
    log.mockRestore()
  })
})
