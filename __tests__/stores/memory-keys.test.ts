import { MemoryStore } from '../../lib/index.js'
import { admitted, charge, hit, peek, policy } from './policies.js'
import { START } from './subject.js'

describe('a memory store with a bound', () => {
  let millis = START
  let store: MemoryStore
  const open = (maxEntries: number): void => {
    millis = START
    store = new MemoryStore({ maxEntries, sweepSeconds: false, clock: () => millis })
  }
  const entries = (): number => store.size.keys + store.size.events
  afterEach(() => store.close())

  it('never holds more, and forgets what was unused for longest', async () => {
    open(100)
    for (let i = 0; i < 1000; i += 1) {
      await hit(store, `key ${i}`, policy())
      await hit(store, 'busy', policy({ limit: 100_000 }))
      expect(entries()).toBeLessThanOrEqual(100)
    }
    expect((await peek(store, 'key 0', policy())).used).toBe(0)
    expect((await peek(store, 'key 999', policy())).used).toBe(1)
    expect((await peek(store, 'busy', policy({ limit: 100_000 }))).used).toBe(1000)
  })

  it('keeps keys that deny, and those that are blocked, before others', async () => {
    open(100)
    const once = policy({ limit: 1, windowSeconds: 3600 })
    expect(await admitted(store, 2, 'denied', once)).toEqual([true, false])
    await store.block(charge('blocked', once), 3_600_000_000, new AbortController().signal)
    for (let i = 0; i < 10_000; i += 1) await hit(store, `key ${i}`, once)
    for (const key of ['denied', 'blocked']) expect((await hit(store, key, once)).denied).toBe(true)
  })

  it('forgets keys that deny when there are no others', async () => {
    open(100)
    const once = policy({ limit: 1, windowSeconds: 3600 })
    for (let i = 0; i < 1000; i += 1) await admitted(store, 2, `key ${i}`, once)
    expect(entries()).toBeLessThanOrEqual(100)
  })

  it('joins the events of a key that has many, and admits nothing too much by it', async () => {
    open(1000)
    const many = policy({ limit: 500, windowSeconds: 60 })
    const times: number[] = []
    for (let i = 0; i < 20_000; i += 1) {
      millis += 1 + ((i * 7919) % 97)
      if (!(await hit(store, 'a', many)).denied) times.push(millis)
    }
    expect(store.size.events).toBeLessThanOrEqual(40)
    for (let i = 500; i < times.length; i += 1) {
      expect((times[i] as number) - (times[i - 500] as number)).toBeGreaterThanOrEqual(60_000)
    }
    // Late by a small part of the window only, so nearly as many as could be.
    const windows = (millis - START) / 60_000
    expect(times.length).toBeGreaterThan(500 * windows * 0.9)
  })

  it('joins the events of one instant, and of a window that is longer than all of them', async () => {
    open(1000)
    const many = policy({ limit: 500, windowSeconds: 3600 })
    const outcomes = []
    for (let i = 0; i < 600; i += 1) outcomes.push((await hit(store, 'a', many)).denied)
    expect(outcomes.filter((denied) => !denied)).toHaveLength(500)
    expect(store.size.events).toBeLessThanOrEqual(40)
    millis += 3_600_001
    expect((await hit(store, 'a', many)).used).toBe(1)
  })

  it('gives back what is not joined, and takes nothing from others where it is', async () => {
    open(100)
    const many = policy({ limit: 1000 })
    const readings = []
    for (let i = 0; i < 50; i += 1) {
      millis += 1
      readings.push(await hit(store, 'a', many))
    }
    const refund = (at: number) =>
      store.refund([{ ...charge('a', many), cost: 1, at }], new AbortController().signal)
    await refund(readings.at(-1)?.at as number)
    expect((await peek(store, 'a', many)).used).toBe(49)
    for (const { at } of readings.slice(0, 10)) await refund(at)
    const { used } = await peek(store, 'a', many)
    expect(used).toBeGreaterThanOrEqual(39)
    expect(used).toBeLessThanOrEqual(49)
    expect(store.size.events).toBeLessThanOrEqual(4)
  })

  it.each([null, 99, 100_000_001, 1000.5, Number.NaN, Number.POSITIVE_INFINITY, '1000'])(
    'has no bound of %p',
    (maxEntries) => {
      open(100)
      expect(() => new MemoryStore({ maxEntries } as never)).toThrow(TypeError)
    },
  )
})
