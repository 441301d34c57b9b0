import {
  type CalendarWindow,
  Limiter,
  MemoryStore,
  rateLimit,
  SqliteStore,
  type UsageOptions,
  usage,
} from 'express-sql-rate-limit'

const DAY = 86_400_000

describe('usage', () => {
  let now = 0
  let store: SqliteStore
  const at = (time: string): void => {
    now = Date.parse(time)
  }
  const quota = (window: CalendarWindow = 'month'): Limiter =>
    new Limiter({ store, name: 'plan', limit: 1_000_000, window, audit: true, timeoutMs: 60_000 })
  /** Buckets as `from – to: used`. */
  const told = async (options: UsageOptions): Promise<string[]> =>
    (await usage(options)).buckets.map(
      ({ from, to, used }) => `${shortened(from)} – ${shortened(to)}: ${used}`,
    )
  const shortened = (date: Date): string => date.toISOString().replace(/(T00:00)?:00\.000Z$/, '')

  beforeEach(() => {
    at('2026-01-01')
    store = new SqliteStore({
      filename: ':memory:',
      sweepSeconds: false,
      clock: () => now,
      keepUsageSeconds: { plan: 400 * 86_400, pair: 86_400 },
    })
  })
  afterEach(() => store.close())

  test('is summed up by day, also the days on which nothing was used', async () => {
    const limiter = quota()
    at('2026-03-01T10:00Z')
    await limiter.hit('acme', { cost: 5 })
    await limiter.hit('other', { cost: 50 })
    at('2026-03-03T23:59:59.999Z')
    await limiter.hit('acme')
    const options = { limiter, key: 'acme', from: '2026-03-01', to: '2026-03-04' }
    expect(await told(options)).toEqual([
      '2026-03-01 – 2026-03-02: 5',
      '2026-03-02 – 2026-03-03: 0',
      '2026-03-03 – 2026-03-04: 1',
    ])
    expect((await usage(options)).used).toBe(6)
  })

  test.each<[CalendarWindow | 'minute', string, string, string[]]>([
    [
      { every: 'day', timeZone: 'Asia/Kathmandu' },
      '2026-03-01',
      '2026-03-01T18:30Z',
      ['2026-02-28T18:15 – 2026-03-01T18:15: 2', '2026-03-01T18:15 – 2026-03-02T18:15: 0'],
    ],
    [
      { every: 'month', timeZone: 'America/Sao_Paulo' },
      '2026-03-01',
      '2026-03-02',
      ['2026-02-01T03:00 – 2026-03-01T03:00: 1', '2026-03-01T03:00 – 2026-04-01T03:00: 3'],
    ],
    ['hour', '2026-03-01T02:30Z', '2026-03-01T03:00Z', ['2026-03-01T02:00 – 2026-03-01T03:00: 1']],
  ])('is summed up by %p, before the events are deleted and after', async (bucket, from, to, expected) => {
    const limiter = quota()
    at('2026-03-01T02:59Z')
    await limiter.hit('acme')
    at('2026-03-01T18:14Z')
    await limiter.hit('acme')
    at('2026-03-10T00:00Z')
    await limiter.hit('acme', { cost: 2 })
    expect(await told({ limiter, key: 'acme', from, to, bucket })).toEqual(expected)
    at('2026-06-01')
    expect(await store.sweep()).toMatchObject({ keys: 1, events: 3 })
    expect(await told({ limiter, key: 'acme', from, to, bucket })).toEqual(expected)
  })

  test('is told up to now, and by minute', async () => {
    const limiter = quota()
    now = Date.now()
    await limiter.hit('acme', { cost: 7 })
    const { used, buckets } = await usage({ limiter, key: 'acme', from: now - 600_000, bucket: 'minute' })
    expect(used).toBe(7)
    expect([11, 12]).toContain(buckets.length)
    expect(buckets.filter((bucket) => bucket.used > 0)).toHaveLength(1)
  })

  test('of years is read with other work in between, and of more than anything is kept for not at all', async () => {
    const limiter = quota()
    at('2026-03-01T10:00Z')
    await limiter.hit('acme', { cost: 3 })
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const years = { limiter, key: 'acme', from: '2017-01-01', to: '2027-01-01', bucket: 'year' } as const
    expect((await usage(years)).used).toBe(3)
    isOver = true
    expect(turns).toBeGreaterThan(1000)
    const older = usage({ ...years, from: '1970-01-01', bucket: 'month' })
    await expect(older).rejects.toThrow('`from` and `to` to be at most 11 years apart, got 57')
  })

  test('of a middleware with several limits is told by name, also where the limit depends on the request', async () => {
    const limiter = rateLimit({
      store,
      limits: [
        { name: 'burst', limit: 100, windowSeconds: 60, keyFn: () => 'acme' },
        { name: 'plan', limit: () => 5, window: 'month', audit: true, keyFn: () => 'acme' },
        { name: 'other', limit: 5, window: 'month', keyFn: () => 'acme' },
      ],
    })
    at('2026-03-01T10:00Z')
    await quota().hit('acme', { cost: 3 })
    const range = { limiter, key: 'acme', from: '2026-03-01', to: '2026-03-02' }
    expect(await usage({ ...range, name: 'plan' })).toMatchObject({ used: 3 })
    expect(await usage({ ...range, name: 'burst' })).toMatchObject({ used: 0 })
    await expect(usage(range)).rejects.toThrow('`name`')
    await expect(usage({ ...range, name: 'none' })).rejects.toThrow('burst, plan, other')
    await expect(usage({ ...range, name: 'other' })).rejects.toThrow('`audit: true`')
  })

  test('of a year of a busy key is read in small pages, and stays small', async () => {
    const limiter = quota()
    const reads: number[] = []
    const read = store.readUsage.bind(store)
    jest.spyOn(store, 'readUsage').mockImplementation(async (...parameters) => {
      const slices = await read(...parameters)
      reads.push(slices.length)
      return slices
    })
    // Hits of a whole year, whose events go as they would.
    const start = Date.UTC(2026, 0, 1)
    const costs = Array.from({ length: 365 * 3 }, (_, i) => 1 + (i % 3))
    for (const [i, cost] of costs.entries()) {
      now = start + (i * DAY) / 3
      await limiter.hit('acme', { cost })
    }
    now = start + 366 * DAY
    await store.sweep()
    const { used, buckets } = await usage({
      limiter,
      key: 'acme',
      from: '2026-01-01',
      to: '2027-01-01',
      bucket: 'month',
    })
    expect(buckets).toHaveLength(12)
    expect(used).toBe(costs.reduce((sum, cost) => sum + cost))
    expect(reads).toHaveLength(365)
    expect(Math.max(...reads)).toBeLessThanOrEqual(192)
  }, 120_000)

  test.each<[string, Record<string, unknown>]>([
    ['limiter', { limiter: {} }],
    ['limiter', { limiter: undefined }],
    ['limiter', { limiter: new Limiter({ store: new MemoryStore(), limit: 1, windowSeconds: 1 }) }],
    ['key', { key: '' }],
    ['from', { from: 'yesterday' }],
    ['from', { from: undefined }],
    ['from', { from: -1 }],
    ['to', { to: '2026-01-01' }],
    ['to', { to: null }],
    ['bucket', { bucket: 'fortnight' }],
    ['bucket', { bucket: null }],
    ['bucket.timeZone', { bucket: { every: 'day', timeZone: 'Europe/Bonn' } }],
    ['bucket', { bucket: 'minute', to: '2026-02-01' }],
    ['name', { name: 'none' }],
    ['until', { until: '2026-02-01' }],
  ])('has no wrong `%s`: %p', async (name, wrong) => {
    const options = { limiter: quota(), key: 'acme', from: '2026-01-01', to: '2026-01-02', ...wrong }
    const failed = usage(options as UsageOptions)
    await expect(failed).rejects.toThrow(TypeError)
    await expect(usage(options as UsageOptions)).rejects.toThrow(`\`${name}\``)
  })

  test.each([
    ['keepUsageSeconds', 60],
    ['keepUsageSeconds', null],
    ['keepUsageSeconds', ['plan']],
    ['keepUsageSeconds.plan', { plan: -1 }],
    ['keepUsageSeconds', { 'plan:a': 60 }],
    ['keepUsageSeconds.plan', { plan: '60' }],
    ['keepUsageSeconds.plan', { plan: 315_360_001 }],
  ])('is not kept with a wrong `%s`: %p', (name, keepUsageSeconds) => {
    const construct = () =>
      new SqliteStore({ filename: ':memory:', keepUsageSeconds: keepUsageSeconds as never })
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(`\`${name}\``)
  })
})

test('a stored key is that of the rows, and begins with the name of its limit', async () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const limiter = new Limiter({ store, name: 'plan', limit: 1, window: 'month' })
  expect(limiter.storedKeys('acme')).toEqual([{ name: 'plan', key: 'plan@month:acme', isLogged: false }])
  const several = rateLimit({
    store,
    limits: [
      { name: 'burst', limit: 1, windowSeconds: 1, keyFn: () => 'a' },
      { name: () => 'tenant', limit: 1, windowSeconds: 1, keyFn: () => 'a' },
    ],
  })
  expect(() => several.storedKeys('a')).toThrow(TypeError)
})
