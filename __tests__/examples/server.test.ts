import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Express } from 'express'
import { MemoryStore, MysqlStore, rateLimit, SqliteStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { freePort } from '../servers/free-port.js'

const ROOT = resolve(__dirname, '../..')
const TSX = pathToFileURL(require.resolve('tsx')).href
const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

describe.each(['express', 'express4'])('the example on %s', (framework) => {
  const START = Date.UTC(2026, 0, 1)
  let now = START
  let store: SqliteStore
  let app: Express

  beforeEach(async () => {
    now = START
    jest.resetModules()
    jest.doMock('express', () => jest.requireActual(framework))
    const { SqliteStore } = await import('express-sql-rate-limit')
    const { createApp } = await import('../../examples/app.js')
    store = new SqliteStore({ filename: ':memory:', clock: () => now })
    await store.install()
    app = createApp(store)
  })

  afterEach(() => store.close())

  const ping = (key?: string) => {
    const asked = request(app).get('/ping')
    return key === undefined ? asked : asked.set('X-Client-Key', key)
  }
  const login = (user: string, password = 'guess') => request(app).post('/login').send({ user, password })
  const claim = (user: string) => request(app).post('/claim').send({ user })
  /** The count of a key under a policy, as GET /status tells it. */
  const countOf = async (policy: string, key: string): Promise<number> => {
    const { body } = await request(app).get('/status').query({ key }).expect(200)
    return body.limiters.find((limiter: { policy: string }) => limiter.policy === policy).count
  }

  describe('GET /ping', () => {
    test('lets three requests of a key through and answers the fourth with 429 and Retry-After', async () => {
      for (const remaining of [2, 1, 0]) {
        const { body } = await ping('alice').expect(200)
        const used = 3 - remaining
        expect(body).toEqual({
          pong: true,
          limits: [
            { policy: 'global', key: '127.0.0.1', used, limit: 100, remaining: 100 - used },
            { policy: 'ping', key: 'alice', used, limit: 3, remaining },
          ],
        })
      }
      const denied = await ping('alice').expect(429)
      expect(denied.headers).toMatchObject({
        'content-type': 'application/problem+json',
        'retry-after': '60',
        'ratelimit-policy': '"global";q=100;w=60, "ping";q=3;w=60',
        ratelimit: '"ping";r=0;t=60',
        'cache-control': 'no-store',
      })
      expect(denied.body).toEqual({
        type: QUOTA_EXCEEDED,
        title: 'Request cannot be satisfied as assigned quota has been exceeded',
        status: 429,
        detail: 'Limit "ping" allows 3 requests per 60 seconds. Retry in 60 seconds.',
        'violated-policies': ['ping'],
        key: 'alice',
        limits: [
          { policy: 'global', key: '127.0.0.1', used: 4, limit: 100, remaining: 96 },
          { policy: 'ping', key: 'alice', used: 3, limit: 3, remaining: 0 },
        ],
      })
    })

    test('counts every key for itself', async () => {
      for (let i = 0; i < 4; i += 1) await ping('alice')
      await ping('bob').expect(200)
      await ping('alice').expect(429)
    })

    test('counts requests without a key, or with an empty one, by their address', async () => {
      await ping().expect(200)
      await ping('').expect(200)
      const { body } = await ping().expect(200)
      expect(body.limits[1]).toMatchObject({ policy: 'ping', key: '127.0.0.1', used: 3 })
      await ping().expect(429)
    })

    test('is not fooled by X-Forwarded-For', async () => {
      for (let i = 0; i < 3; i += 1) await ping().set('X-Forwarded-For', `203.0.113.${i}`).expect(200)
      await ping().set('X-Forwarded-For', '203.0.113.9').expect(429)
    })

    test('forgets requests that are a window old', async () => {
      for (let i = 0; i < 3; i += 1) await ping('alice').expect(200)
      now += 60_001
      const { body } = await ping('alice').expect(200)
      expect(body.limits[1]).toMatchObject({ policy: 'ping', used: 1 })
    })
  })

  describe('GET /status', () => {
    test('shows the counters of a key and counts nothing, not even for the address that asks', async () => {
      await ping('alice')
      for (let i = 0; i < 5; i += 1) {
        expect(await countOf('ping', 'alice')).toBe(1)
        expect(await countOf('global', '127.0.0.1')).toBe(1)
      }
      expect(await countOf('ping', 'nobody')).toBe(0)
    })

    test('shows every limiter', async () => {
      await claim('alice')
      const { body } = await request(app).get('/status').query({ key: 'claim:alice' }).expect(200)
      expect(body.limiters).toHaveLength(5)
      expect(body.limiters[4]).toEqual({
        key: 'claim:alice',
        policy: 'claim',
        count: 1,
        limit: 1,
        remaining: 0,
        resetSeconds: 3600,
      })
    })

    test('answers a missing key with 400', async () => {
      const { body, type } = await request(app).get('/status').expect(400)
      expect(type).toBe('application/problem+json')
      expect(body).toMatchObject({ status: 400, title: 'Bad Request' })
    })
  })

  describe('POST /login', () => {
    test('welcomes, or answers 401, and says what was counted by address and by account', async () => {
      const { body } = await login('alice', 'demo').expect(200)
      expect(body).toEqual({
        welcome: 'alice',
        limits: [
          { policy: 'global', key: '127.0.0.1', used: 1, limit: 100, remaining: 99 },
          { policy: 'login', key: 'login:127.0.0.1', used: 1, limit: 15, remaining: 14 },
          { policy: 'login-account', key: 'login:alice', used: 1, limit: 5, remaining: 4 },
        ],
      })
      const wrong = await login('alice').expect(401)
      expect(wrong.body).toMatchObject({ status: 401, title: 'Unauthorized' })
      expect(wrong.body.limits[2]).toMatchObject({ used: 2 })
    })

    test('stops one address that tries many accounts after 15 attempts', async () => {
      for (let i = 0; i < 15; i += 1) await login(`user-${i}`).expect(401)
      const { body, headers } = await login('user-15').expect(429)
      expect(body).toMatchObject({ 'violated-policies': ['login'], key: 'login:127.0.0.1' })
      expect(headers['retry-after']).toBe('900')
      expect(await countOf('login-account', 'login:user-15')).toBe(0)
    })

    test('stops many addresses that try one account after 5 attempts, the right password too', async () => {
      app.set('trust proxy', true)
      for (let i = 0; i < 5; i += 1) await login('alice').set('X-Forwarded-For', `203.0.113.${i}`).expect(401)
      const { body } = await login('alice', 'demo').set('X-Forwarded-For', '203.0.113.9').expect(429)
      expect(body).toMatchObject({ 'violated-policies': ['login-account'], key: 'login:alice' })
      await login('bob', 'demo').set('X-Forwarded-For', '203.0.113.9').expect(200)
    })

    test('counts attempts with a body that makes no sense by their address', async () => {
      await request(app).post('/login').expect(400)
      await login('').expect(400)
      await request(app).post('/login').type('json').send('{"user":').expect(400)
      expect(await countOf('login', 'login:127.0.0.1')).toBe(3)
    })
  })

  describe('POST /claim', () => {
    test('lets a user claim once an hour', async () => {
      const { body } = await claim('alice').expect(200)
      expect(body).toMatchObject({ claimed: 'alice' })
      expect(body.limits[1]).toEqual({ policy: 'claim', key: 'claim:alice', used: 1, limit: 1, remaining: 0 })
      now += 3_600_001
      await claim('alice').expect(200)
      const denied = await claim('alice').expect(429)
      expect(denied.headers['retry-after']).toBe('3600')
      expect(denied.body).toMatchObject({ 'violated-policies': ['claim'], key: 'claim:alice' })
      await claim('bob').expect(200)
    })

    test('answers malformed JSON and a missing user with 400, counting no claim', async () => {
      const malformed = await request(app).post('/claim').type('json').send('{"user":').expect(400)
      expect(malformed.type).toBe('application/problem+json')
      expect(malformed.body).toMatchObject({ status: 400, detail: 'The body is not valid JSON.' })
      for (const body of [undefined, {}, { user: 7 }, { user: '' }, ['alice']]) {
        const { body: problem } = await request(app).post('/claim').send(body).expect(400)
        expect(problem).toMatchObject({
          status: 400,
          detail: 'Send a JSON object in which "user" is a text.',
        })
      }
      expect(await countOf('claim', 'claim:undefined')).toBe(0)
    })
  })

  test('lets only those reset and block on the dashboard who were given the link', async () => {
    for (let i = 0; i < 3; i += 1) await ping('alice').expect(200)
    const order = { limit: 'ping', key: 'alice' }
    const browser = request.agent(app)
    const reset = async (): Promise<number> => {
      const { body } = await browser.get('/api/session').expect(200)
      const asked = browser.post('/api/reset').set('X-Rate-Limit-Token', String(body.token))
      return (await asked.send(order)).status
    }
    expect(await reset()).toBe(403)
    await browser.get('/operator/guess').expect(404)
    expect(await reset()).toBe(403)
    await browser.get(app.locals.operatorPath).expect(302)
    expect(await reset()).toBe(200)
    await ping('alice').expect(200)
    app.locals.dashboard.close()
  })

  test('everything counts towards 100 requests a minute of an address, unknown routes too', async () => {
    const lost = await request(app).get('/nowhere').expect(404)
    expect(lost.type).toBe('application/problem+json')
    expect(lost.body).toMatchObject({ status: 404, limits: [{ policy: 'global', used: 1 }] })
    for (let i = 1; i < 100; i += 1) await ping(`key-${i}`).expect(200)
    const { body } = await ping('another').expect(429)
    expect(body).toMatchObject({ 'violated-policies': ['global'], key: '127.0.0.1' })
  })

  test('while the store is down, requests pass uncounted, but logins are refused with 503', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation(() => {})
    await store.close()
    const { body } = await ping('alice').expect(200)
    expect(body.limits[1]).toEqual({ policy: 'ping', key: 'alice', used: null, limit: 3, remaining: null })
    const refused = await login('alice', 'demo').expect(503)
    expect(refused.body).toMatchObject({ status: 503, title: 'Service Unavailable' })
    expect(refused.headers['retry-after']).toBe('5')
    log.mockRestore()
  })
})

describe('the example as a process', () => {
  let folder: string
  const processes: ChildProcess[] = []

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rate-limit-example-'))
  })

  afterEach(() => {
    for (const child of processes.splice(0)) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  /** One process, unlike with npx or tsx's own command, so that a signal reaches the server itself. */
  function run(file: string, env: NodeJS.ProcessEnv): ChildProcess {
    const child = spawn(process.execPath, ['--import', TSX, join(ROOT, 'examples', file)], {
      cwd: folder,
      env: { ...process.env, TSX_TSCONFIG_PATH: join(ROOT, 'tsconfig.json'), DATABASE_URL: '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    processes.push(child)
    return child
  }

  async function startServer(): Promise<{ child: ChildProcess; address: string }> {
    const child = run('server.ts', { PORT: '0', SQLITE_FILE: join(folder, 'limits.sqlite') })
    const [line] = await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line')
    const address = /^Listening on (http:\/\/localhost:\d+), counting in SQLite file /.exec(line)?.[1]
    return { child, address: String(address) }
  }

  test('answers over HTTP, stops at SIGTERM, and remembers its counts when it is started again', async () => {
    const ping = (address: string) => fetch(`${address}/ping`, { headers: { 'X-Client-Key': 'alice' } })

    const first = await startServer()
    for (let i = 0; i < 3; i += 1) expect((await ping(first.address)).status).toBe(200)
    const denied = await ping(first.address)
    expect(denied.status).toBe(429)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(50)
    expect(await denied.json()).toMatchObject({ type: QUOTA_EXCEEDED, key: 'alice' })
    first.child.kill('SIGTERM')
    expect(await once(first.child, 'exit')).toEqual([0, null])

    const second = await startServer()
    expect((await ping(second.address)).status).toBe(429)
    second.child.kill('SIGTERM')
    expect(await once(second.child, 'exit')).toEqual([0, null])
  }, 60_000)

  test('says so when its port is taken, and exits with 1', async () => {
    const { address } = await startServer()
    const { port } = new URL(address)
    const child = run('server.ts', { PORT: port, SQLITE_FILE: join(folder, 'limits.sqlite') })
    const [line] = await once(createInterface({ input: child.stderr as NodeJS.ReadableStream }), 'line')
    expect(line).toBe(`Port ${port} is taken. Set PORT to another one.`)
    expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(1)
  }, 60_000)

  test('examples/quick-start.ts lets three exports an hour through', async () => {
    const port = await freePort()
    run('quick-start.ts', { PORT: String(port) })
    const post = () => fetch(`http://127.0.0.1:${port}/export`, { method: 'POST' })
    /** It does not say when it listens. */
    const firstAnswer = async (): Promise<Response> => {
      for (;;) {
        const response = await post().catch(() => pause(50))
        if (response) return response
      }
    }
    expect(await (await firstAnswer()).json()).toEqual({ started: true, left: 2 })
    expect((await post()).status).toBe(200)
    expect((await post()).status).toBe(200)
    expect((await post()).status).toBe(429)
  }, 60_000)
})

describe('README.md, and what it leads to', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')

  test('begins with the two commands', () => {
    expect(readme.split('\n').slice(0, 12)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^npm ci && npm start\b/),
        expect.stringMatching(/^npm ci && npm test\b/),
      ]),
    )
  })

  test('shows examples/quick-start.ts as it is', () => {
    const snippet = readFileSync(join(ROOT, 'examples/quick-start.ts'), 'utf8')
    expect(readme).toContain(`\`\`\`ts\n${snippet}\`\`\`\n`)
  })

  test.each([
    ['rateLimit', rateLimit],
    ['MysqlStore', (options: never) => new MysqlStore(options)],
    ['SqliteStore', (options: never) => new SqliteStore(options)],
    ['MemoryStore', (options: never) => new MemoryStore(options)],
  ])('docs/options.md has a row for every option of %s', (_name, take) => {
    const options = readFileSync(join(ROOT, 'docs/options.md'), 'utf8')
    // The error for an unknown option lists the known ones.
    const known = /It has: (.*)$/.exec(errorOf(() => take({ nonsense: 1 } as never)).message)?.[1]
    const rows = Array.from(options.matchAll(/^\| `(\w+)` /gm), ([, option]) => option)
    expect(rows).toEqual(expect.arrayContaining(String(known).split(', ')))
  })
})

function errorOf(work: () => unknown): Error {
  try {
    work()
  } catch (error) {
    return error as Error
  }
  throw new Error('Expected an error')
}
