import { Limiter, type Store } from '../../../lib/index.js'
import { runCli, runJson } from './run-cli.js'

// Each test starts the program several times.
jest.setTimeout(120_000)

/** A database of one kind, empty, for one test. */
export interface Place {
  /** As DATABASE_URL has it. */
  readonly url: string
  /** A store on it, as the application has one. */
  open(options?: { keepUsageSeconds?: Record<string, number> }): Store
  /** The code of the error where nothing is installed. */
  readonly withoutTables: string
  /** Lets everything expire that is stored. */
  expire(): Promise<void>
  drop(): Promise<void>
}

/** What every command does, on whatever database. */
export function commandsContract(create: () => Promise<Place>): void {
  let place: Place
  let store: Store
  beforeEach(async () => {
    place = await create()
    store = place.open()
  })
  afterEach(async () => {
    await store.close()
    await place.drop()
  })
  const text = (...args: string[]) => runCli(args, { databaseUrl: place.url })
  const json = (...args: string[]) => runJson(args, { databaseUrl: place.url })
  const limiter = (name: string, options: object = {}): Limiter =>
    new Limiter({ store, name, limit: 5, windowSeconds: 3600, timeoutMs: 20_000, ...options })

  it('install creates the tables, and again changes nothing', async () => {
    const first = await text('install')
    expect(first).toEqual({
      code: 0,
      stdout: 'Created rate_keys, rate_events, rate_limit_schema, rate_usage, rate_usage_limits.\n',
      stderr: '',
    })
    expect(await text('install')).toEqual({ code: 0, stdout: 'The tables are there.\n', stderr: '' })
    expect(await json('install')).toEqual({ code: 0, json: { command: 'install', created: [] } })
    expect((await limiter('global').hit('a')).outcome).toBe('allowed')
  })

  it('status tells of a calendar quota how long its window is, and when it ends', async () => {
    await limiter('plan', { windowSeconds: undefined, window: 'day' }).hit('alice')
    const { json: said } = await json('status', 'alice')
    const [key] = (said as { keys: { windowSeconds: number; used: number; resetSeconds: number }[] }).keys
    expect(key).toMatchObject({ windowSeconds: 86_400, used: 1 })
    expect(key?.resetSeconds).toBeGreaterThan(0)
    expect(key?.resetSeconds).toBeLessThanOrEqual(86_400)
  })

  it.each([['status', 'a'], ['top'], ['reset', 'a'], ['block', 'a', '5'], ['sweep']])(
    '%s without tables says what to do',
    async (...args) => {
      const { code, json: said } = await json(...args)
      expect(code).toBe(3)
      expect(said).toEqual({
        command: args[0],
        error: {
          code: place.withoutTables,
          message: expect.any(String),
          advice: expect.stringMatching(/install/),
        },
      })
    },
  )

  it('status finds a key in every limiter that counted it, in whatever form', async () => {
    const secret = 'a secret of sixteen characters'
    await limiter('global').hit('alice', { cost: 3 })
    await limiter('login', { algorithm: 'fixed-window', windowSeconds: 900 }).hit('alice')
    await limiter('claim').hit(['alice', '1'])
    await limiter('hashed', { hashKeys: secret }).hit('alice')
    const long = `alice ${'é'.repeat(200)}`
    await limiter('global').hit(long)
    await limiter('global').hit('bob')

    const { code, json: found } = await json('status', 'alice')
    expect(code).toBe(0)
    expect(found).toMatchObject({
      command: 'status',
      isBlocked: false,
      hashedLimiters: ['hashed'],
      isComplete: true,
    })
    expect(found.keys).toEqual([
      {
        ...{ limiter: 'global', key: 'alice', storedKey: 'global:alice' },
        ...{ algorithm: 'sliding-window', windowSeconds: 3600, calendar: null, used: 3 },
        ...{
          resetSeconds: expect.any(Number),
          blockedSeconds: 0,
          lastHitAt: expect.stringMatching(/^20.*Z$/),
        },
      },
      {
        ...{ limiter: 'login', key: 'alice', storedKey: 'login@900:alice' },
        ...{ algorithm: 'fixed-window', windowSeconds: 900, calendar: null, used: 1 },
        ...{ resetSeconds: expect.any(Number), blockedSeconds: 0, lastHitAt: expect.any(String) },
      },
    ])
    expect(found.keys[0].resetSeconds).toBeGreaterThan(3500)
    expect(found.keys[0].resetSeconds).toBeLessThanOrEqual(3600)
    expect(found.keys[1].resetSeconds).toBeLessThanOrEqual(900)

    const parts = await json('status', '--parts', '["alice","1"]')
    expect(parts.json.keys).toMatchObject([{ limiter: 'claim', key: '["alice","1"]', used: 1 }])
    const hashed = await runJson(['status', 'alice', '--hashed'], {
      databaseUrl: place.url,
      environment: { RATE_LIMIT_HASH_KEYS: secret },
    })
    expect(hashed.json.keys).toMatchObject([{ limiter: 'hashed', key: null, used: 1 }])
    expect((await json('status', long)).json.keys).toMatchObject([{ limiter: 'global', key: null, used: 1 }])
    const stored = await json('status', '--stored', hashed.json.keys[0].storedKey)
    expect(stored.json.keys).toMatchObject([{ limiter: 'hashed', used: 1 }])
    expect((await json('status', 'alice', '--name', 'login')).json.keys).toHaveLength(1)
  })

  it('block says when a limiter has its keys in the other form, and blocks none that nobody reads', async () => {
    const secret = 'a secret of sixteen characters'
    await limiter('hashed', { hashKeys: secret }).hit('alice')
    await limiter('plain').hit('bob')
    const plainly = await text('block', 'alice', '60', '--name', 'hashed')
    expect([plainly.code, plainly.stderr]).toEqual([2, expect.stringContaining('say --hashed')])
    const asHash = await runCli(['block', 'alice', '60', '--name', 'plain', '--hashed'], {
      databaseUrl: place.url,
      environment: { RATE_LIMIT_HASH_KEYS: secret },
    })
    expect([asHash.code, asHash.stderr]).toEqual([2, expect.stringContaining('leave --hashed out')])
    expect((await json('status', 'alice')).json.keys).toEqual([])
  })

  it('status knows the windows of a calendar', async () => {
    const window = { every: 'month', timeZone: 'Asia/Tokyo', startsOn: 15 } as const
    const quota = new Limiter({ store, name: 'plan', limit: 100, window, timeoutMs: 20_000 })
    await quota.hit('acme', { cost: 7 })
    const [found] = (await json('status', 'acme')).json.keys
    expect(found).toMatchObject({
      ...{
        limiter: 'plan',
        key: 'acme',
        algorithm: 'fixed-window',
        calendar: 'month.15/asia/tokyo',
        used: 7,
      },
    })
    const { resetSeconds } = await quota.peek('acme')
    expect(Math.abs(found.resetSeconds - (resetSeconds ?? 0))).toBeLessThan(30)
    expect((await text('status', 'acme')).stdout).toContain('month.15/asia/tokyo')
  })

  it('status as text is a table, and counts nothing', async () => {
    const global = limiter('global')
    await global.hit('alice', { cost: 3 })
    const { code, stdout, stderr } = await text('status', 'alice')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^limiter {2}key +used {2}window {2}counts +frees in +last hit {2}blocked for\n/)
    expect(stdout).toMatch(/\nglobal +alice +3 +1 h {2}sliding +(59 min \d+ s|1 h) +[\d.]+ s ago\n$/)
    expect((await global.peek('alice')).used).toBe(3)
    expect(await text('status', 'nobody')).toEqual({
      ...{ code: 0, stdout: 'Nothing is counted of nobody.\n', stderr: '' },
    })
  })

  it('block denies until reset ends it, in processes that run already too', async () => {
    const global = limiter('global')
    await global.hit('alice')
    const { code, json: blocked } = await json('block', 'alice', '3600')
    expect(code).toBe(0)
    expect(blocked).toEqual({
      ...{ command: 'block', storedKeys: ['global:alice'], seconds: 3600 },
      blockedUntil: expect.stringMatching(/^20.*Z$/),
    })
    const denied = await global.hit('alice')
    expect(denied.outcome).toBe('denied')

    const status = await json('status', 'alice')
    expect(status.code).toBe(1)
    expect(status.json.isBlocked).toBe(true)
    expect(status.json.keys[0].blockedSeconds).toBeGreaterThan(3500)
    expect((await text('status', 'alice')).stdout).toMatch(/\nBlocked for (1 h|59 min \d+ s)\. To end that: /)
    expect((await json('top', '--by', 'blocked')).json.keys).toMatchObject([{ storedKey: 'global:alice' }])

    expect(await json('reset', 'alice')).toEqual({
      ...{ code: 0, json: { command: 'reset', storedKeys: ['global:alice'], isComplete: true } },
    })
    // What this process refused is remembered for a second at most.
    const deadline = Date.now() + 5_000
    let outcome: string = 'denied'
    while (outcome === 'denied' && Date.now() < deadline) outcome = (await global.hit('alice')).outcome
    expect(outcome).toBe('allowed')
    expect((await text('reset', 'nobody')).stdout).toBe('Nothing is counted of nobody.\n')
  })

  it('block takes a key that is not counted yet where it is told the limiter', async () => {
    const login = limiter('login', { algorithm: 'fixed-window', windowSeconds: 900 })
    await login.hit('bob')
    const unknown = await text('block', 'alice', '60')
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toMatch(/No limiter counts alice at the moment: say with --name/)
    // As the limiter's other keys are stored.
    expect((await json('block', 'alice', '60', '--name', 'login')).json.storedKeys).toEqual([
      'login@900:alice',
    ])
    expect((await login.hit('alice')).outcome).toBe('denied')
    expect((await json('block', 'alice', '60', '--name', 'new')).json.storedKeys).toEqual(['new:alice'])
    expect((await limiter('new').hit('alice')).outcome).toBe('denied')
  })

  it('top ranks by what windows hold, and tells when it has not looked at all keys', async () => {
    for (const [key, cost] of [
      ['a', 1],
      ['b', 5],
      ['c', 3],
    ] as const) {
      await limiter('slow').hit(key, { cost })
    }
    await limiter('fast', { windowSeconds: 60 }).hit('d', { cost: 2 })
    const names = (found: { json: { keys: { key: string }[] } }): string[] =>
      found.json.keys.map(({ key }) => key)
    const used = await json('top')
    expect(names(used)).toEqual(['b', 'c', 'd', 'a'])
    expect(used.json).toMatchObject({ command: 'top', by: 'used', scanned: 4, isComplete: true })
    expect(names(await json('top', '--by', 'rate'))).toEqual(['d', 'b', 'c', 'a'])
    const recent = await json('top', '--by', 'recent')
    const times: string[] = recent.json.keys.map(({ lastHitAt }: { lastHitAt: string }) => lastHitAt)
    expect(times).toEqual([...times].sort().reverse())
    expect(names(await json('top', '--by', 'recent', '--count', '1'))).toEqual(names(recent).slice(0, 1))
    expect(names(await json('top', '--name', 'fast'))).toEqual(['d'])
    expect(names(await json('top', '--by', 'blocked'))).toEqual([])
    const bounded = await json('top', '--scan', '3')
    expect(bounded.json).toMatchObject({ scanned: 3, isComplete: false })
    // Those that count longest from now.
    expect(names(bounded)).toEqual(['b', 'c', 'a'])
    expect((await text('top', '--scan', '3')).stdout).toMatch(/\n\nOf the 3 keys looked at; there are more: /)
  })

  it('top counts what has left a window no more', async () => {
    const short = limiter('short', { windowSeconds: 0.2 })
    await short.hit('gone', { cost: 4 })
    while ((await short.peek('gone')).used !== 0);
    expect((await json('top')).json).toMatchObject({ keys: [], scanned: 1 })
    expect((await json('status', 'gone')).json.keys).toMatchObject([{ used: 0, resetSeconds: 0 }])
    expect((await text('top')).stdout).toBe('No key counts anything.\n')
  })

  it('sweep removes what has expired, says how far it is, and leaves the rest', async () => {
    await limiter('old').hit('a')
    await limiter('old').hit('b')
    await place.expire()
    await limiter('new').hit('c')
    const { code, stdout } = await text('sweep')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Removed 2 keys and 2 events.\n' })
    expect(await json('sweep')).toEqual({
      ...{ code: 0, json: { command: 'sweep', ran: true, keys: 0, events: 0, seconds: expect.any(Number) } },
    })
    expect((await json('top')).json.keys).toHaveLength(1)
  })

  it('usage tells what a key has used, and sweep and reset take nothing of it away', async () => {
    // The database learns whose usage is kept from the application's store.
    const keeping = place.open({ keepUsageSeconds: { plan: 34_560_000 } })
    const plan = new Limiter({
      store: keeping,
      name: 'plan',
      limit: 100,
      windowSeconds: 3600,
      timeoutMs: 20_000,
    })
    const told = async () => (await json('usage', 'acme', '--time-zone', 'Asia/Tokyo')).json
    await plan.hit('acme', { cost: 7 })
    const first = await told()
    expect(first).toMatchObject({
      ...{ command: 'usage', bucket: 'day', timeZone: 'Asia/Tokyo' },
      keys: [{ storedKey: 'plan:acme', used: 7 }],
    })
    const { buckets } = first.keys[0]
    expect(buckets.at(-1)).toEqual({
      from: expect.stringMatching(/T15:00:00\.000Z$/),
      to: expect.any(String),
      used: 7,
    })
    expect(buckets).toHaveLength(8)

    await place.expire()
    expect((await json('sweep')).json).toMatchObject({ keys: 1, events: 1 })
    expect((await told()).keys).toMatchObject([{ used: 7 }])
    await plan.hit('acme', { cost: 2 })
    await place.expire()
    await json('sweep')
    expect((await told()).keys).toMatchObject([{ used: 9 }])
    await plan.hit('acme', { cost: 3 })
    await json('reset', 'acme')
    expect((await told()).keys).toMatchObject([{ used: 12 }])

    const month = await text('usage', 'acme', '--name', 'plan', '--bucket', 'month')
    expect(month.stdout).toMatch(/^plan:acme: 12 in \d buckets?\n\nfrom +to +used\n20/)
    await keeping.close()
    expect((await text('usage', 'nobody')).stdout).toBe('No usage of nobody is kept of that time.\n')
  })

  it('shows what strangers wrote as text, and never as commands for the terminal', async () => {
    const key = 'a\u001b[2J\u202eb\n\u0085'
    await limiter('global').hit(key)
    for (const { stdout } of [await text('top'), await text('status', key), await text('reset', key)]) {
      expect(stdout).toContain('a\\u001b[2J\\u202eb\\u000a\\u0085')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
    await limiter('global').hit(key)
    const { stdout } = await text('status', key, '--json')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(stdout.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
    expect(JSON.parse(stdout).keys[0].key).toBe(key)
  })
}
