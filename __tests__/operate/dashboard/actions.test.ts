import { rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { expressVersions, portOf, serve } from '../../http/serve.js'
import { failures, SECRETS, WatchedStore } from '../../limiter/watched-store.js'
import { act, mount, openSession } from './mount.js'

describe.each(expressVersions)('on Express %s', (_, express) => {
  test('a reset forgets what was counted, and tells the state of the key', async () => {
    const { app, ping } = mount({}, express)
    for (let i = 0; i < 4; i += 1) await ping.hit('anna')
    const { status, body } = await act(app, 'reset', { limit: 'ping', key: 'anna' })
    expect(status).toBe(200)
    expect(body.row).toMatchObject({ limit: 'ping', key: 'anna', denied: false, fill: { used: 0, limit: 3 } })
    expect((await ping.hit('anna')).outcome).toBe('allowed')
  })

  test('a block denies everything on the key for so long', async () => {
    const { app, ping } = mount({}, express)
    const before = Date.now()
    const { body } = await act(app, 'block', { limit: 'ping', key: 'anna', seconds: 60 })
    expect(body.row).toMatchObject({ denied: true, fill: { used: 0 } })
    expect(body.row.fill.freesAt).toBeGreaterThanOrEqual(before + 59_000)
    expect(await ping.hit('anna')).toMatchObject({ outcome: 'denied', retryAfterSeconds: expect.any(Number) })
    expect((await ping.hit('ben')).outcome).toBe('allowed')
  })

  test('reads the body itself, or takes what the application has read', async () => {
    for (const parsers of [[], [express.json()]]) {
      const { page, ping } = mount()
      const app = express()
      app.use(...(parsers as []), (_req, _res, next) => next())
      for (const parser of parsers) app.use(parser)
      app.use('/limits', page)
      await ping.hit('anna')
      const { status } = await act(app, 'reset', { limit: 'ping', key: 'anna' })
      expect(status).toBe(200)
      expect((await ping.peek('anna')).used).toBe(0)
    }
  })

  test('looks a key up in every limit, and counts nothing', async () => {
    const { app, ping } = mount({}, express)
    for (let i = 0; i < 3; i += 1) await ping.hit('anna')
    const { body } = await request(app).get('/limits/api/find?key=anna').expect(200)
    expect(body.rows).toEqual([
      { limit: 'ping', key: 'anna', denied: true, fill: expect.objectContaining({ used: 3, limit: 3 }) },
      {
        limit: 'login',
        key: 'anna',
        denied: false,
        fill: expect.objectContaining({ used: 0, limit: 5, freesAt: 0 }),
      },
    ])
    const one = await request(app).get('/limits/api/find?key=anna&limit=login').expect(200)
    expect(one.body.rows).toHaveLength(1)
    await request(app).get('/limits/api/find?key=anna&limit=other').expect(404)
    await request(app).get('/limits/api/find').expect(400)
    await request(app).get('/limits/api/find?key=a&key=b').expect(400)
  })

  test('means a key of several parts, too, when a text looks like one', async () => {
    const { app, ping } = mount({}, express)
    await ping.hit(['a:b', 'c'])
    const key = '["a:b","c"]'
    const { body } = await request(app).get('/limits/api/find').query({ key, limit: 'ping' }).expect(200)
    expect(body.rows[0].fill.used).toBe(1)
    await act(app, 'reset', { limit: 'ping', key })
    expect((await ping.peek(['a:b', 'c'])).used).toBe(0)
  })

  test.each([
    '<script>alert(1)</script>',
    '\u202Etxt.exe',
    "' OR 1=1 --",
    '__proto__',
    '😀',
    'a\0b',
    '["a"',
    'x'.repeat(10_000),
  ])('resets the key %.20j as it was hit', async (key) => {
    const { app, ping } = mount({}, express)
    await ping.hit(key)
    const { status, body } = await act(app, 'reset', { limit: 'ping', key })
    expect(status).toBe(200)
    expect(body.row.key).toBe(key)
    expect((await ping.peek(key)).used).toBe(0)
  })

  test.each<[string, unknown, number]>([
    ['no key', { limit: 'ping' }, 400],
    ['an empty key', { limit: 'ping', key: '' }, 400],
    ['a key that is no text', { limit: 'ping', key: ['a'] }, 400],
    ['a key that is much too long', { limit: 'ping', key: 'x'.repeat(20_000) }, 400],
    ['no limit', { key: 'a' }, 400],
    ['a limit that is not here', { limit: 'other', key: 'a' }, 404],
    ['a limit of Object', { limit: 'constructor', key: 'a' }, 404],
    ['an array', ['ping', 'a'], 400],
  ])('refuses %s', async (_, order, status) => {
    const { app } = mount({}, express)
    const response = await act(app, 'reset', order as object)
    expect(response.status).toBe(status)
    expect(response.type).toBe('application/problem+json')
  })

  test('refuses a body that is much too long, and says so', async () => {
    const { app } = mount({}, express)
    const server = await serve(app as never)
    const { token, cookie } = await openSession(app)
    const { status } = await request(server)
      .post('/limits/api/reset')
      .set({ Cookie: cookie, 'X-Rate-Limit-Token': token })
      .send({ limit: 'ping', key: 'a', more: 'x'.repeat(1_000_000) })
    expect(status).toBe(400)
  })

  test.each([0, -1, 'a', null, 1e9, undefined])('refuses a block for %p seconds', async (seconds) => {
    const { app } = mount({}, express)
    const { status, body } = await act(app, 'block', { limit: 'ping', key: 'a', seconds })
    expect(status).toBe(400)
    expect(body.detail).toMatch(/seconds/)
  })

  describe('who may act', () => {
    const order = { limit: 'ping', key: 'anna' }
    const refused = async (change: (asked: request.Test) => request.Test): Promise<void> => {
      const { app, ping } = mount({}, express)
      await ping.hit('anna')
      const { token, cookie } = await openSession(app)
      const asked = request(app)
        .post('/limits/api/reset')
        .set({ Cookie: cookie, 'X-Rate-Limit-Token': token, 'Sec-Fetch-Site': 'same-origin' })
      const response = await change(asked)
      expect([400, 403]).toContain(response.status)
      expect((await ping.peek('anna')).used).toBe(1)
    }

    test('not whoever authorize lets only look', async () => {
      const { app, ping } = mount({ authorize: () => 'read' }, express)
      await ping.hit('anna')
      for (const action of ['reset', 'block'] as const) {
        const { status, body } = await act(app, action, { ...order, seconds: 60 })
        expect(status).toBe(403)
        expect(body.detail).toBe('You may look, but not change anything.')
      }
      expect((await ping.peek('anna')).used).toBe(1)
    })

    test('not without the token', () => refused((asked) => asked.unset('X-Rate-Limit-Token').send(order)))
    test('not with another token', () =>
      refused((asked) => asked.set('X-Rate-Limit-Token', 'x'.repeat(43)).send(order)))
    test('not without the cookie', () => refused((asked) => asked.unset('Cookie').send(order)))
    test('not with a cookie that somebody made up', () =>
      refused((asked) =>
        asked.set('Cookie', 'rate-limit-dashboard=').set('X-Rate-Limit-Token', '').send(order),
      ))
    test.each(['cross-site', 'same-site'])('not a page that the browser calls %s', (site) =>
      refused((asked) => asked.set('Sec-Fetch-Site', site).send(order)),
    )
    test.each(['https://evil.example', 'null', 'http://127.0.0.1.evil.example'])(
      'not a page of the origin %s, where the browser tells only that',
      (origin) => refused((asked) => asked.unset('Sec-Fetch-Site').set('Origin', origin).send(order)),
    )
    test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
      'not a form: a body of type %s is none',
      (type) => refused((asked) => asked.set('Content-Type', type).send(JSON.stringify(order))),
    )
    test('not JSON that is broken', () => refused((asked) => asked.type('json').send('{"limit":')))

    test('a page of the origin that was asked, in a browser that tells only its origin', async () => {
      const { app } = mount({}, express)
      const { token, cookie } = await openSession(app)
      const server = await serve(app as never)
      await request(server)
        .post('/limits/api/reset')
        .set({ Cookie: cookie, 'X-Rate-Limit-Token': token, Origin: `http://127.0.0.1:${portOf(server)}` })
        .send(order)
        .expect(200)
    })

    test('a page behind a proxy that Express trusts, by the host that the proxy names', async () => {
      for (const [trusted, status] of [
        [true, 200],
        [false, 403],
      ] as const) {
        const { app } = mount({}, express)
        app.set('trust proxy', trusted)
        const { token, cookie } = await openSession(app)
        await request(app)
          .post('/limits/api/reset')
          .set({ Cookie: cookie, 'X-Rate-Limit-Token': token, Origin: 'https://ops.example' })
          .set('X-Forwarded-Host', 'ops.example')
          .send(order)
          .expect(status)
      }
    })

    test('the token stays a browser’s, is kept from scripts, and comes with no other site’s request', async () => {
      const { app } = mount({}, express)
      const first = await request(app).get('/limits/api/session').expect(200)
      const [cookie = ''] = first.headers['set-cookie'] as unknown as string[]
      expect(cookie).toMatch(/^rate-limit-dashboard=[\w-]{43}; HttpOnly; SameSite=Strict$/)
      const again = await request(app)
        .get('/limits/api/session')
        .set('Cookie', cookie.split(';')[0] as string)
      expect(again.body.token).toBe(first.body.token)
      expect(again.headers['set-cookie']).toBeUndefined()
      const other = await request(app).get('/limits/api/session')
      expect(other.body.token).not.toBe(first.body.token)
    })

    test('adds its cookie to those of the application', async () => {
      const { page } = mount()
      const app = express()
      app.use((_req, res, next) => {
        res.cookie('session', '1')
        next()
      })
      app.use('/limits', page)
      const { headers } = await request(app).get('/limits/api/session')
      expect(headers['set-cookie']).toHaveLength(2)
    })

    test.each(['session', 'find?key=a', 'events'])('another site gets nothing of api/%s', async (path) => {
      const { app } = mount({}, express)
      await request(app).get(`/limits/api/${path}`).set('Sec-Fetch-Site', 'cross-site').expect(403)
    })
  })

  test.each(failures.filter(([name]) => name !== 'never settles'))(
    'is a 503 problem when the store %s, and shows nothing of it',
    async (_, fail) => {
      const store = new WatchedStore()
      const { app } = mount({ store }, express)
      store.before = fail
      const answers = [
        await act(app, 'reset', { limit: 'ping', key: 'a' }),
        await act(app, 'block', { limit: 'ping', key: 'a', seconds: 60 }),
        await request(app).get('/limits/api/find?key=a'),
      ]
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503])
      for (const { headers, text } of answers) expect(JSON.stringify([headers, text])).not.toMatch(SECRETS)
    },
  )

  test('a limiter with a limit that depends on the request is not offered, and the others are', async () => {
    const { store, ping } = mount()
    const limits = [
      { name: 'all', limit: 3, windowSeconds: 60 },
      { name: 'plan', limit: () => 5, windowSeconds: 60 },
    ]
    const mixed = rateLimit({ store, limits })
    const { app } = mount({ store, limiters: [mixed, ping] }, express)
    for (const limit of ['plan', 'all'])
      expect((await act(app, 'reset', { limit, key: 'a' })).status).toBe(404)
    expect((await act(app, 'reset', { limit: 'ping', key: 'a' })).status).toBe(200)
    const { body } = await request(app).get('/limits/api/find?key=a').expect(200)
    expect(body.rows).toMatchObject([{ limit: 'ping' }])
  })
})
