import { readdirSync } from 'node:fs'
import { type DashboardOptions, dashboard, Limiter, MemoryStore, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { appWith, expressVersions } from '../../http/serve.js'
import { mount } from './mount.js'

describe.each(expressVersions)('on Express %s', (_, express) => {
  test('serves the page and everything that it loads', async () => {
    const { app } = mount({}, express)
    const page = await request(app).get('/limits/').expect(200)
    expect(page.type).toBe('text/html')
    const loaded = Array.from(page.text.matchAll(/(?:src|href)="(assets\/[^"]+)"/g), ([, path]) => path)
    expect(loaded.length).toBeGreaterThan(4)
    const seen = new Set<string>()
    const load = async (path: string): Promise<void> => {
      if (seen.has(path)) return
      seen.add(path)
      const { text, type } = await request(app).get(`/limits/${path}`).buffer(true).expect(200)
      if (path.endsWith('.js')) expect(type).toMatch(/^(text|application)\/javascript$/)
      if (path.endsWith('.css')) expect(type).toBe('text/css')
      for (const [, file] of (text ?? '').matchAll(/^import .* from '\.\/([\w-]+\.js)'$/gm))
        await load(`assets/${file}`)
    }
    for (const path of loaded) await load(String(path))
    expect(seen).toContain('assets/uplot.js')
    expect(seen.size).toBeGreaterThan(12)
  })

  test('every file of the page is served', async () => {
    const { app } = mount({}, express)
    for (const file of readdirSync('lib/operate/dashboard/page')) {
      const path = file === 'dashboard.html' ? '' : `assets/${file}`
      await request(app).get(`/limits/${path}`).expect(200)
    }
  })

  test('no file names another host, and none needs an inline script or style', async () => {
    const { app } = mount({}, express)
    const { text, headers } = await request(app).get('/limits/').expect(200)
    expect(text).not.toMatch(/<style|<script(?![^>]* src=)|\sstyle=|\son\w+=|https?:\/\//)
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    )
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'private, no-cache',
    })
  })

  test('sends the page to its address with a slash, where it finds its files', async () => {
    const { app } = mount({}, express)
    const { headers } = await request(app).get('/limits?a=1').expect(302)
    expect(headers.location).toBe('./limits/')
  })

  test.each(['//evil.example/limits', '/limits\\', '/%2f%2fevil.example'])(
    'never sends anybody to another host: %s',
    async (path) => {
      const { page } = mount()
      const app = express()
      app.use(page)
      const { headers } = await request(app).get(path)
      expect(headers.location ?? './').toMatch(/^\.\//)
    },
  )

  test.each([
    ['GET', '/limits/other'],
    ['GET', '/limits/assets/../dashboard.ts'],
    ['GET', '/limits/assets/%2e%2e%2fdashboard.html'],
    ['GET', '/limits/__proto__'],
    ['GET', '/limits/assets/constructor'],
    ['POST', '/limits/'],
    ['GET', '/limits/api/reset'],
    ['POST', '/limits/api/find'],
    ['GET', '/'],
  ])('leaves %s %s to the application', async (method, path) => {
    const { page } = mount()
    const app = express()
    app.use('/limits', page)
    app.use(appWith(express))
    const { body } = await request(app)[method.toLowerCase() as 'get'](path)
    expect(body).toEqual({ ok: true })
  })

  test('answers HEAD as GET', async () => {
    const { app } = mount({}, express)
    const head = await request(app).head('/limits/').expect(200)
    const get = await request(app).get('/limits/').expect(200)
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
  })

  describe('authorize', () => {
    const paths = ['/', '/assets/dashboard.js', '/api/session', '/api/events', '/api/find?key=a']

    test.each(paths)('is asked before %s', async (path) => {
      const authorize = jest.fn(async () => false)
      const { app } = mount({ authorize }, express)
      const refused = await request(app).get(`/limits${path}`).expect(403)
      expect(refused.type).toBe('application/problem+json')
      expect(refused.body).toMatchObject({ status: 403, detail: 'This is for operators.' })
      expect(refused.headers['content-security-policy']).toMatch(/^default-src 'none'/)
      expect(authorize).toHaveBeenCalledTimes(1)
    })

    test.each<[string, () => unknown]>([
      [
        'throws',
        () => {
          throw new Error('the database of users is down')
        },
      ],
      ['rejects', async () => Promise.reject(new Error('down'))],
      ['returns nothing', () => {}],
      ['returns another text', () => 'write'],
      ['returns a record', async () => ({ id: 1 })],
    ])('one that %s lets nobody in', async (_, authorize) => {
      const { app } = mount({ authorize } as unknown as Partial<DashboardOptions>, express)
      const { text } = await request(app).get('/limits/').expect(403)
      expect(text).not.toContain('down')
    })

    test("'read' lets somebody look, and tells the page so", async () => {
      const { app } = mount({ authorize: () => 'read' }, express)
      await request(app).get('/limits/').expect(200)
      await request(app).get('/limits/api/find?key=a').expect(200)
      const { body } = await request(app).get('/limits/api/session').expect(200)
      expect(body.mayAct).toBe(false)
    })

    test('is asked about each request, whoever was let in before', async () => {
      const answers = [true, 'read', false] as const
      let asked = -1
      const authorize = () => {
        asked += 1
        return answers[asked] as boolean | 'read'
      }
      const { app } = mount({ authorize }, express)
      expect((await request(app).get('/limits/api/session')).body.mayAct).toBe(true)
      expect((await request(app).get('/limits/api/session')).body.mayAct).toBe(false)
      await request(app).get('/limits/api/session').expect(403)
    })
  })
})

describe('a wrong option throws at construction', () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const limiter = new Limiter({ store, limit: 1, windowSeconds: 1 })
  const create = (options: object) =>
    dashboard({ limiters: [], store, authorize: 'none', ...options } as DashboardOptions)

  test.each([undefined, null, true, 'all', {}])('`authorize`: %p', (authorize) => {
    expect(() => create({ authorize })).toThrow(TypeError)
    expect(() => create({ authorize })).toThrow(
      /^Expected `authorize` to be a function of the request, or 'none'/,
    )
  })

  const other = new Limiter({ store: new MemoryStore({ sweepSeconds: false }), limit: 1, windowSeconds: 1 })
  test.each([
    ['nothing', undefined],
    ['one limiter', limiter],
    ['what is no limiter', [{}]],
    ['null', [null]],
    ['a limiter that counts in another store', [limiter, other]],
  ])('`limiters`: %s', (_, limiters) => {
    expect(() => create({ limiters })).toThrow(TypeError)
    expect(() => create({ limiters })).toThrow(
      /^Expected `limiters` to be an array of limiters that count in `store`/,
    )
  })

  test.each([undefined, null, {}])('`store`: %p', (wrong) => {
    expect(() => create({ store: wrong })).toThrow(/^Expected `store` to be a store/)
  })

  test.each([0, 1.5, '20', null, 1001])('`maxViewers`: %p', (maxViewers) => {
    expect(() => create({ maxViewers })).toThrow(/^Expected `maxViewers` to be a whole number from 1 to 1000/)
  })

  test.each([
    '/a.js',
    ['a.js'],
    ['//evil.example/a.js'],
    ['/\\evil.example/a.js'],
    ['https://evil.example/a.js'],
    [7],
  ])('`panels`: %p', (panels) => {
    expect(() => create({ panels })).toThrow(/^Expected `panels` to be an array of paths on this origin/)
  })

  test('an unknown option', () => {
    expect(() => create({ limiter: 1 })).toThrow(
      /^Unknown option `limiter` of dashboard\. It has: .*\bauthorize\b/,
    )
  })

  test('a middleware of several limits is a limiter too', () => {
    const limits = [
      { name: 'burst', limit: 10, windowSeconds: 1 },
      { name: 'hour', limit: 100, windowSeconds: 3600 },
    ]
    const page = create({ limiters: [rateLimit({ store, limits })] })
    page.close()
    expect(page).toHaveProperty('name', 'dashboard')
  })
})
