import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Algorithm,
  type Key,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  SqliteStore,
} from 'express-sql-rate-limit'

const SECRET = 'a secret of the application'
const EMAIL = 'ann.smith@example.com'
const ADDRESS = '203.0.113.77'
const keys: Key[] = [EMAIL, ADDRESS, [EMAIL, ADDRESS], `${EMAIL}\ud83d`, `${EMAIL} ${'x'.repeat(500)}`]
const algorithms: Algorithm[] = ['sliding-window', 'fixed-window']

const create = (options: Partial<LimiterOptions> = {}) =>
  new Limiter({
    store: new MemoryStore({ sweepSeconds: false }),
    name: 'login',
    limit: 2,
    windowSeconds: 60,
    timeoutMs: 60_000,
    onStoreError: 'deny',
    ...options,
  })

describe.each(algorithms)('hazard 147: the files of a SqliteStore, %s', (algorithm) => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rate-limit-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  /** All bytes at rest after every kind of use. */
  async function atRest(options: Partial<LimiterOptions>): Promise<string> {
    const store = new SqliteStore({ filename: join(folder, 'limits.db'), sweepSeconds: false })
    await store.install()
    const limiter = create({ store, algorithm, audit: true, ...options })
    for (const key of keys) {
      const decision = await limiter.hit(key)
      await limiter.peek(key)
      for (let i = 0; i < 4; i += 1) await limiter.hit(key)
      await limiter.refund(decision)
      await limiter.penalize(key, 2)
      await limiter.block(key, 60)
    }
    const dump = async () => {
      const files = await readdir(folder)
      const contents = await Promise.all(files.map((file) => readFile(join(folder, file), 'latin1')))
      return contents.join('\n')
    }
    // With the write-ahead log, and once more when that is in the database.
    const open = await dump()
    await store.close()
    return open + (await dump())
  }

  test('hold no address and no e-mail when keys are hashed', async () => {
    const bytes = await atRest({ hashKeys: SECRET })
    expect(bytes).toContain('login')
    for (const trace of [EMAIL, ADDRESS, 'ann.smith', 'example.com', '203.0.113', SECRET])
      expect(bytes.includes(trace)).toBe(false)
  })

  test('hold them when keys are not hashed, or this test would see nothing', async () => {
    const bytes = await atRest({})
    for (const trace of [EMAIL, ADDRESS]) expect(bytes.includes(trace)).toBe(true)
  })
})

describe('a limiter with hashKeys', () => {
  test.each(algorithms)('counts each key apart, exactly (%s)', async (algorithm) => {
    const limiter = create({ hashKeys: SECRET, algorithm })
    for (const key of [...keys, ['a:b', 'c'], ['a', 'b:c'], 'a:b:c']) {
      const decisions = [await limiter.hit(key), await limiter.hit(key), await limiter.hit(key)]
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false])
    }
  })

  test('shows its caller the key as it was given', async () => {
    const limiter = create({ hashKeys: SECRET })
    expect(await limiter.hit(EMAIL)).toMatchObject({ key: EMAIL, limits: [{ key: EMAIL }] })
  })

  test('peeks at, blocks, refunds and resets what it counted', async () => {
    const limiter = create({ hashKeys: SECRET })
    const decision = await limiter.hit(EMAIL)
    expect(await limiter.peek(EMAIL)).toMatchObject({ used: 1 })
    expect(await limiter.refund(decision)).toBe(true)
    expect(await limiter.peek(EMAIL)).toMatchObject({ used: 0 })
    await limiter.block(EMAIL, 60)
    expect(await limiter.peek(EMAIL)).toMatchObject({ allowed: false })
    await limiter.reset(EMAIL)
    expect(await limiter.peek(EMAIL)).toMatchObject({ allowed: true })
  })

  test('shares its counters with another of the same name and secret, and with no other', async () => {
    const store = new MemoryStore({ sweepSeconds: false })
    await create({ store, hashKeys: SECRET }).hit(EMAIL)
    const usedBy = async (options: Partial<LimiterOptions>) =>
      (await create({ store, ...options }).peek(EMAIL)).used
    expect(await usedBy({ hashKeys: SECRET })).toBe(1)
    expect(await usedBy({ hashKeys: `${SECRET}.` })).toBe(0)
    expect(await usedBy({})).toBe(0)
    expect(await usedBy({ hashKeys: SECRET, name: 'other' })).toBe(0)
    expect(await usedBy({ hashKeys: SECRET, algorithm: 'fixed-window' })).toBe(0)
  })
})

test.each([null, '', 'short', 'fifteen letters', 5, true, Buffer.alloc(32), {}])(
  'a secret of %p is a TypeError that does not repeat it',
  (hashKeys) => {
    const construct = () => create({ hashKeys: hashKeys as string })
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(/`hashKeys`/)
    if (typeof hashKeys === 'string' && hashKeys !== '') expect(construct).not.toThrow(hashKeys)
  },
)
