import { Limiter, type LimiterOptions, StoreError } from 'express-sql-rate-limit'
import { passTime, stopTime } from './moving-time.js'
import { failures, gate, WatchedStore } from './watched-store.js'

function failing(fail: () => unknown, options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore()
  store.before = fail
  const logger = { error: jest.fn<void, [string]>() }
  const limiter = new Limiter({ store, limit: 1, windowSeconds: 60, timeoutMs: 20, logger, ...options })
  return { store, limiter, logger }
}

const codes: Record<string, string> = {
  'rejects with a StoreError': 'ERR_STORE_CONNECTION',
  'never settles': 'ERR_STORE_TIMEOUT',
}
const refuse = failures[0]?.[1] as () => unknown

describe.each(failures)('a store that %s', (mode, fail) => {
  describe.each(['hit', 'peek'] as const)('at a %s', (method) => {
    test.each([
      ['allow', true],
      ['deny', false],
    ] as const)(
      'is answered by onStoreError %s, as degraded and never as a denial',
      async (onStoreError, allowed) => {
        const { limiter } = failing(fail, { onStoreError })
        expect(await limiter[method]('k')).toEqual({
          outcome: 'degraded',
          allowed,
          local: false,
          policy: 'default',
          key: 'k',
          limit: 1,
          limits: [],
          wouldDeny: false,
          used: null,
          remaining: null,
          retryAfterSeconds: null,
          resetSeconds: null,
          error: expect.any(StoreError),
        })
      },
      5000,
    )

    test('says why by a code', async () => {
      const { limiter } = failing(fail)
      const decision = await limiter[method]('k')
      expect(decision).toMatchObject({ error: { code: codes[mode] ?? 'ERR_STORE_FAILED' } })
    }, 5000)
  })
})

test('the error that a store threw is the cause of the one that is told', async () => {
  const cause = new Error('disk I/O error')
  const { limiter } = failing(() => Promise.reject(cause))
  expect(await limiter.hit('k')).toMatchObject({ error: { code: 'ERR_STORE_FAILED', cause } })
})

test('a store that is back decides again, without being told', async () => {
  const { store, limiter } = failing(refuse)
  expect(await limiter.hit('k')).toMatchObject({ outcome: 'degraded' })
  store.before = () => {}
  expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed', used: 1 })
  expect(await limiter.hit('k')).toMatchObject({ outcome: 'denied' })
})

test('an answer that comes too late is not remembered as one', async () => {
  const { store, limiter } = failing(() => {})
  const { opened, open } = gate()
  store.after = () => opened
  expect(await limiter.hit('k')).toMatchObject({ outcome: 'degraded', error: { code: 'ERR_STORE_TIMEOUT' } })
  open()
  expect(await limiter.peek('k')).toMatchObject({ outcome: 'denied', used: 1 })
})

describe('hazard 140: what is logged', () => {
  beforeEach(stopTime)

  test('is one line in thirty seconds, and the next one says how many failures there were', async () => {
    const { limiter, logger } = failing(refuse)
    const lines = (): string[] =>
      logger.error.mock.calls.map(([line]) => line).filter((line) => line.startsWith('Rate limiter "'))
    for (let i = 0; i < 100; i += 1) await limiter.hit('k')
    expect(lines()).toHaveLength(1)
    passTime(29_999)
    await limiter.peek('k')
    expect(lines()).toHaveLength(1)
    passTime(1)
    await limiter.hit('k')
    expect(lines()).toHaveLength(2)
    expect(lines()[1]).toMatch(/\b100 more\b/)
  })

  test('names the limiter and the code, and what happens to requests', async () => {
    const { limiter, logger } = failing(refuse, { name: 'login', onStoreError: 'deny' })
    await limiter.hit('k')
    expect(logger.error.mock.calls[0]?.[0]).toMatch(/"login".*ERR_STORE_CONNECTION.*refused.*503/)
  })

  test('says that requests are let through, where they are', async () => {
    const { limiter, logger } = failing(refuse)
    await limiter.hit('k')
    expect(logger.error.mock.calls[0]?.[0]).toMatch(/let through uncounted/)
  })

  test('hazard 156: has no key, no SQL and no password in it', async () => {
    const { limiter, logger } = failing(failures[1]?.[1] as () => unknown)
    await limiter.hit('anna@example.com')
    expect(logger.error).toHaveBeenCalledTimes(1)
    expect(logger.error.mock.calls[0]?.[0]).not.toMatch(/anna|SELECT|rate_keys|s3cret/)
  })

  test('is each limiter’s own', async () => {
    const { store, limiter, logger } = failing(refuse)
    const other = new Limiter({ store, name: 'other', limit: 1, windowSeconds: 1, logger })
    await Promise.all([limiter.hit('k'), other.hit('k'), limiter.hit('k'), other.hit('k')])
    expect(logger.error).toHaveBeenCalledTimes(2)
  })

  test('is nothing while the store answers, denials included', async () => {
    const { limiter, logger } = failing(() => {})
    for (let i = 0; i < 3; i += 1) await limiter.hit('k')
    expect(logger.error).not.toHaveBeenCalled()
  })

  test('may fail itself, which fails no request', async () => {
    const logger = {
      error() {
        throw new Error('log is full')
      },
    }
    const { limiter } = failing(refuse, { logger })
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'degraded', allowed: true })
  })
})

describe('onStoreError as a function', () => {
  const decided = async (onStoreError: unknown): Promise<boolean> => {
    const fail = async (): Promise<never> => {
      throw new StoreError('ERR_STORE_CONNECTION', 'down')
    }
    const { limiter } = failing(fail, { onStoreError } as Partial<LimiterOptions>)
    return (await limiter.hit('k')).allowed
  }

  test('is asked with the error, and decides', async () => {
    const codes: string[] = []
    const byCode = (error: StoreError): string => {
      codes.push(error.code)
      return 'allow'
    }
    expect(await decided(byCode)).toBe(true)
    expect(await decided(() => 'deny')).toBe(false)
    expect(codes).toEqual(['ERR_STORE_CONNECTION'])
  })

  test('lets nothing through by accident', async () => {
    const accidents = [
      () => undefined,
      () => true,
      async () => 'allow',
      () => {
        throw new Error('no')
      },
    ]
    for (const accident of accidents) expect(await decided(accident)).toBe(false)
  })
})
