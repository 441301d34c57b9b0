import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Request } from 'express'
import { MemoryStore, normalizeKey, rateLimit, SqliteStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { appWith, expressVersions } from './serve.js'

const memory = (): MemoryStore => new MemoryStore({ sweepSeconds: false })

describe.each(expressVersions)('on Express %s', (_, express) => {
  const statuses = async (
    app: ReturnType<typeof appWith>,
    paths: string[],
    headers: Record<string, string>[] = [],
  ) => {
    const seen: number[] = []
    for (const [i, path] of paths.entries()) {
      seen.push(
        (
          await request(app)
            .get(path)
            .set(headers[i] ?? {})
        ).status,
      )
    }
    return seen
  }

  test('hazard 134: a key from a body or a query that is not there is refused, not let through', async () => {
    const limiter = rateLimit({
      store: memory(),
      limit: 5,
      windowSeconds: 60,
      // Express 5 has no body without a parser, Express 4 neither; a nested query is a text in one and an object in the other.
      keyFn: (req) => req.body?.user ?? req.query.user,
    })
    const app = appWith(express, limiter)
    expect(await statuses(app, ['/', '/?user=ann', '/?user='])).toEqual([500, 200, 500])
    expect(app.handled).toHaveLength(1)
  })

  test('hazard 144: one user is one key, however his header is written, when the key is the user that was verified', async () => {
    const userOf = async (req: Request): Promise<string> => {
      const token = /^bearer +(\S+)$/i.exec((req.get('authorization') ?? '').trim())?.[1]
      return token === 'secret' ? 'user:7' : 'nobody'
    }
    const app = appWith(express, rateLimit({ store: memory(), limit: 3, windowSeconds: 60, keyFn: userOf }))
    const spellings = ['Bearer secret', 'bearer secret', 'BEARER  secret', ' Bearer secret']
    const headers = spellings.map((authorization) => ({ authorization }))
    expect(await statuses(app, ['/', '/', '/', '/'], headers)).toEqual([200, 200, 200, 429])
  })

  test('hazard 145: an account with two identifiers is one key, found by an async keyFn', async () => {
    const accounts = new Map([
      ['ann', 1],
      ['ann@example.com', 1],
    ])
    const keyFn = async (req: Request): Promise<string> => {
      const name = normalizeKey(String(req.query.user))
      return `account:${accounts.get(name) ?? name}`
    }
    const app = appWith(express, rateLimit({ store: memory(), limit: 3, windowSeconds: 60, keyFn }))
    const paths = [
      '/?user=Ann',
      '/?user=ann%40example.com',
      '/?user=ANN%20',
      '/?user=ann%40EXAMPLE.com',
      '/?user=eve',
    ]
    expect(await statuses(app, paths)).toEqual([200, 200, 200, 429, 200])
  })

  test('hazard 150: an account that exists and one that does not answer alike', async () => {
    const app = appWith(
      express,
      rateLimit({ store: memory(), limit: 2, windowSeconds: 60, keyFn: (req) => String(req.query.user) }),
    )
    const answers = async (user: string): Promise<unknown[]> => {
      const seen: unknown[] = []
      for (let i = 0; i < 3; i += 1) {
        const { status, headers } = await request(app).get(`/?user=${user}`)
        seen.push([status, headers.ratelimit, headers['ratelimit-policy'], headers['retry-after']])
      }
      return seen
    }
    expect(await answers('ann')).toEqual(await answers('who-is-that'))
  })

  test('hazard 153: requests that go round several processes count in one place', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
    const filename = join(folder, 'limits.sqlite')
    const stores = Array.from({ length: 4 }, () => new SqliteStore({ filename, sweepSeconds: false }))
    const apps = stores.map((store) =>
      appWith(express, rateLimit({ store, limit: 5, windowSeconds: 60, timeoutMs: 5000 })),
    )
    const seen: number[] = []
    for (let i = 0; i < 8; i += 1) {
      seen.push((await request(apps[i % 4] as (typeof apps)[number]).get('/')).status)
    }
    expect(seen).toEqual([200, 200, 200, 200, 200, 429, 429, 429])
    await Promise.all(stores.map((store) => store.close()))
    rmSync(folder, { recursive: true })
  })
})
