import {
  cooldown,
  MemoryStore,
  MysqlStore,
  type RateLimitOptions,
  rateLimit,
  rateLimitStatus,
  type Store,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { appWith, expressVersions } from './serve.js'

/** What no client may see: the key, the secret, the database's address, user, password and statements, our files. */
const PRIVATE =
  /ann@example|topsecret|127\.0\.0\.1|:1\b|app_user|hunter2|private_db|SELECT|rate_|ECONN|Error|\.[jt]s\b/i
const KEY = 'ann@example.com'
const HASH_SECRET = 'topsecret topsecret'
const forms = ['draft-11', 'draft-8', 'draft-7', 'draft-6', false] as const
const accepts = ['application/json', 'text/html', 'text/plain']

const quiet = { error() {}, warn() {} }

describe.each(expressVersions)('what clients are shown, on Express %s', (_, express) => {
  const stores: Store[] = []
  afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))
  const keep = (store: Store): Store => {
    stores.push(store)
    return store
  }
  const memory = () => keep(new MemoryStore({ sweepSeconds: false }))
  /** A server that is not there, with everything in its address that must not be shown. */
  const dead = () => keep(new MysqlStore({ uri: 'mysql://app_user:hunter2@127.0.0.1:1/private_db' }))

  const optionsFor = (store: Store): RateLimitOptions => ({
    ...{ store, name: 'login', limit: 1, windowSeconds: 60, logger: quiet, hashKeys: HASH_SECRET },
    keyFn: () => KEY,
    onStoreError: 'deny',
  })

  async function expectNothingPrivate(app: ReturnType<typeof appWith>, statuses: number[]): Promise<void> {
    for (const accept of accepts) {
      for (const status of statuses) {
        const { headers, text } = await request(app).get('/').set('Accept', accept).expect(status)
        expect(JSON.stringify([headers, text])).not.toMatch(PRIVATE)
      }
      statuses.splice(0, statuses.length - 1)
    }
  }

  test.each(forms)(
    'an admission and a denial have no key in them, with headers of %s',
    async (standardHeaders) => {
      const limiter = rateLimit({ ...optionsFor(memory()), standardHeaders, legacyHeaders: true })
      await expectNothingPrivate(appWith(express, limiter), [200, 429])
    },
  )

  test.each(forms)(
    'a database that is down is a 503 without its address, with headers of %s',
    async (standardHeaders) => {
      const limiter = rateLimit({ ...optionsFor(dead()), standardHeaders, legacyHeaders: true })
      await expectNothingPrivate(appWith(express, limiter), [503])
    },
  )

  test('a cooldown shows no more', async () => {
    const options = { name: 'claim', seconds: 60, keyFn: () => KEY, logger: quiet }
    await expectNothingPrivate(appWith(express, cooldown({ ...options, store: memory() })), [200, 429])
    await expectNothingPrivate(appWith(express, cooldown({ ...options, store: dead() })), [503])
  })

  test('nor does the status to operators, nor to others', async () => {
    const limiters = [rateLimit({ ...optionsFor(dead()), timeoutMs: 2000 })]
    const shown = appWith(express, rateLimitStatus({ limiters, authorize: 'none' }))
    const down = await request(shown).get('/?key=anna').expect(503)
    expect(JSON.stringify([down.headers, down.text])).not.toMatch(PRIVATE)
    const authorize = () => {
      throw new Error('SELECT password FROM app_user')
    }
    await expectNothingPrivate(appWith(express, rateLimitStatus({ limiters, authorize })), [403])
  })
})
