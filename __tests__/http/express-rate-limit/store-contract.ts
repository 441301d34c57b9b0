import { type ExpressRateLimitOptions, toExpressRateLimitStore } from 'express-sql-rate-limit'
import { passTime, stopTime } from '../../limiter/moving-time.js'
import { type OpenSubject, START, type Subject } from '../../stores/subject.js'

const MINUTE = 60_000

const ways: [string, Partial<ExpressRateLimitOptions>][] = [
  ['a limit that is a number', { limit: 3 }],
  ['a limit that is a function', { limit: () => 3 }],
  ['hits that may be given back', { limit: 3, skipFailedRequests: true }],
]

/** What express-rate-limit expects of any store, called by hand as its own tests call theirs. */
export function expressRateLimitStoreContract(open: OpenSubject): void {
  describe.each(ways)('as a store of express-rate-limit with %s', (_, rule) => {
    let subject: Subject
    let now: number

    beforeEach(async () => {
      stopTime()
      subject = await open()
      now = START
      await subject.setClock(now)
    })
    afterEach(() => subject.close())

    const create = (options: Partial<ExpressRateLimitOptions> = {}, name = 'one') => {
      const store = toExpressRateLimitStore(subject.store, { name, timeoutMs: MINUTE })
      store.init({ windowMs: MINUTE, ...rule, ...options })
      return store
    }
    const pass = async (milliseconds: number): Promise<void> => {
      now += milliseconds
      passTime(milliseconds)
      await subject.setClock(now)
    }
    const hitsOf = async (counted: Promise<{ totalHits: number } | undefined>) => (await counted)?.totalHits

    it('counts 1, then 2, and each key for itself', async () => {
      const store = create()
      expect(await hitsOf(store.increment('a'))).toBe(1)
      expect(await hitsOf(store.increment('a'))).toBe(2)
      expect(await hitsOf(store.increment('b'))).toBe(1)
      expect(await hitsOf(store.increment('a'))).toBe(3)
    })

    it('tells what was counted, counting nothing', async () => {
      const store = create()
      await store.increment('a')
      await store.increment('a')
      for (let i = 0; i < 3; i += 1) expect(await hitsOf(store.get('a'))).toBe(2)
      expect((await store.get('a'))?.resetTime).toBeInstanceOf(Date)
      expect(await store.get('never seen')).toBeUndefined()
    })

    it('gives the newest hit back', async () => {
      const store = create()
      await store.increment('a')
      await store.increment('a')
      await store.decrement('a')
      expect(await hitsOf(store.increment('a'))).toBe(2)
    })

    it('never gives back more than was taken', async () => {
      const store = create()
      await store.increment('a')
      await store.decrement('a')
      await store.decrement('a')
      await store.decrement('b')
      expect(await hitsOf(store.get('a'))).toBe(0)
      expect(await hitsOf(store.increment('a'))).toBe(1)
      expect(await hitsOf(store.increment('b'))).toBe(1)
    })

    it('forgets a key that is reset, and no other', async () => {
      const store = create()
      for (const key of ['a', 'a', 'a', 'a', 'b']) await store.increment(key)
      await store.resetKey('a')
      expect(await store.get('a')).toBeUndefined()
      expect(await hitsOf(store.increment('a'))).toBe(1)
      expect(await hitsOf(store.increment('b'))).toBe(2)
      await store.decrement('a')
      expect(await hitsOf(store.get('a'))).toBe(0)
    })

    it('forgets all its keys at once, and those of no other limiter', async () => {
      const [one, two] = [create(), create({}, 'one.two')]
      for (const key of ['a', 'b', '', 'x'.repeat(300), '\ud800', '😀']) {
        for (let i = 0; i < 4; i += 1) await one.increment(key)
        await two.increment(key)
      }
      await one.resetAll()
      for (const key of ['a', 'b', '', 'x'.repeat(300), '\ud800', '😀']) {
        expect(await one.get(key)).toBeUndefined()
        expect(await hitsOf(one.increment(key))).toBe(1)
        expect(await hitsOf(two.get(key))).toBe(1)
      }
    })

    it('begins anew after the window, again and again', async () => {
      const store = create()
      for (let i = 0; i < 3; i += 1) {
        expect(await hitsOf(store.increment('a'))).toBe(1)
        expect(await hitsOf(store.increment('a'))).toBe(2)
        // The second hit has an instant of its own, a microsecond later.
        await pass(MINUTE + 1)
        expect(await store.get('a')).toBeUndefined()
      }
    })

    it('gives back nothing of a window that is over', async () => {
      const store = create()
      await store.increment('a')
      await pass(MINUTE)
      await store.increment('a')
      await store.increment('a')
      await store.decrement('a')
      await store.decrement('a')
      await store.decrement('a')
      expect(await hitsOf(store.get('a'))).toBe(0)
      expect(await hitsOf(store.increment('a'))).toBe(1)
    })

    it('counts above the limit what must not pass, and says until when', async () => {
      const store = create()
      for (let i = 1; i <= 3; i += 1) expect(await hitsOf(store.increment('a'))).toBe(i)
      await pass(20_000)
      for (let i = 0; i < 3; i += 1) {
        const { totalHits, resetTime } = await store.increment('a')
        expect(totalHits).toBeGreaterThan(3)
        expect(Number.isSafeInteger(totalHits)).toBe(true)
        // By this process's clock, which is another one than the store's.
        expect(resetTime.getTime() - Date.now()).toBe(40_000)
      }
    })

    it('keeps limiters of different names and windows apart', async () => {
      const one = create()
      const two = create({ windowMs: 1000 }, 'two')
      await one.increment('a')
      expect(await hitsOf(two.increment('a'))).toBe(1)
      await two.resetKey('a')
      expect(await hitsOf(one.increment('a'))).toBe(2)
      expect([one.prefix, two.prefix]).toEqual(['one:', 'two:'])
    })

    it.each([
      ['', ' '],
      ['a:b', 'a'],
      ['User@x', 'user@x'],
      ['résumé', 'resume'],
      ['abc', 'abc '],
      ['😀', '😁'],
      ['x'.repeat(300), `${'x'.repeat(299)}y`],
      ["'; DROP TABLE rate_keys; --", "'; DROP TABLE rate_keys; -- "],
    ])('counts any two keys apart (%#)', async (key, other) => {
      const store = create()
      expect(await hitsOf(store.increment(key))).toBe(1)
      expect(await hitsOf(store.increment(other))).toBe(1)
      expect(await hitsOf(store.increment(key))).toBe(2)
      await store.resetKey(key)
      expect(await store.get(key)).toBeUndefined()
      expect(await hitsOf(store.get(other))).toBe(1)
    })

    it('counts what is no text under its text, as other stores do', async () => {
      const store = create()
      for (const key of [7, undefined, null]) await store.increment(key as unknown as string)
      for (const key of ['7', 'undefined', 'null']) expect(await hitsOf(store.get(key))).toBe(1)
    })
  })
}
