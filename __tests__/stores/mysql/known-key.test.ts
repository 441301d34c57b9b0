import { EMPTY_HEAD, type Head } from '../../../lib/stores/account.js'
import { KnownKey } from '../../../lib/stores/mysql/known-key.js'
import { policy } from '../policies.js'

const WINDOW = 10_000_000
const by = policy({ limit: 100, windowSeconds: 10 })

/** A head whose remembered first event tells nothing, so that the log is what is asked. */
const head = (last: number, total: number, more: Partial<Head> = {}): Head => ({
  ...EMPTY_HEAD,
  total,
  last,
  span: WINDOW,
  logVersion: 7,
  ...more,
})

/** A key with an event of cost 1 each second from 1 s to 5 s, as read from the log. */
const readKey = (): KnownKey => {
  const key = new KnownKey(head(5_000_000, 5))
  const events = [1, 2, 3, 4, 5].map((n) => ({ ts: n * 1_000_000, base: n - 1 }))
  key.sawEvents(WINDOW, 500_000, 5_000_000, events)
  return key
}
const wrote = (key: KnownKey, ts: number, total: number): void =>
  key.wrote({ key: 'p:a', head: head(ts, total), expiresAt: 0, event: { ts, hits: 1, total }, prune: null }, [
    by,
  ])

describe('what is remembered of a key', () => {
  it('tells the first event of a window as it moves, and that it is empty', () => {
    const key = readKey()
    expect(key.startOf(WINDOW, 600_000)).toEqual({ first: 1_000_000, base: 0 })
    expect(key.startOf(WINDOW, 1_000_000)).toEqual({ first: 2_000_000, base: 1 })
    expect(key.startOf(WINDOW, 4_999_999)).toEqual({ first: 5_000_000, base: 4 })
    expect(key.startOf(WINDOW, 5_000_000)).toEqual({ first: 0, base: 0 })
  })

  it('goes on with what this process writes', () => {
    const key = readKey()
    wrote(key, 6_000_000, 6)
    expect(key.startOf(WINDOW, 5_500_000)).toEqual({ first: 6_000_000, base: 5 })
  })

  it('counts a lease as there until a window after its end, and forgets nothing before its time', () => {
    const key = readKey()
    const stamp = 7_000_000
    const leased = { ts: stamp, hits: 10, total: 15 }
    key.wrote(
      { key: 'p:a', head: head(6_000_000, 15, { stamp }), expiresAt: 0, event: leased, prune: null },
      [by],
    )
    expect(key.startOf(WINDOW, 600_000)).toEqual({ first: 1_000_000, base: 0 })
    expect(key.startOf(WINDOW, 6_500_000)).toEqual({ first: stamp, base: 5 })
    expect(key.startOf(WINDOW, stamp)).toEqual({ first: 0, base: 0 })
  })

  it('says nothing of what lies before it, as after a clock that steps back', () => {
    expect(readKey().startOf(WINDOW, 400_000)).toBeUndefined()
  })

  it('stays true when another process writes behind it, and ends there', () => {
    const key = readKey()
    key.saw(head(8_000_000, 9))
    wrote(key, 9_000_000, 10)
    expect(key.startOf(WINDOW, 4_000_000)).toEqual({ first: 5_000_000, base: 4 })
    expect(key.startOf(WINDOW, 5_000_000)).toBeUndefined()
  })

  it.each([
    ['the log was rewritten by a refund', head(5_000_000, 4, { logVersion: 8 })],
    ['the key was reset and begun anew', head(6_000_000, 1, { logVersion: 6_000_000 })],
    ['a replica took over without the newest writes', head(3_000_000, 3)],
  ])('is not believed when %s', (_, found) => {
    const key = readKey()
    key.saw(found)
    expect(key.startOf(WINDOW, 1_500_000)).toBeUndefined()
  })

  it('holds the oldest 32 events of a busy window, and no gap behind them', () => {
    const key = new KnownKey(EMPTY_HEAD)
    const begin = 1_000_000_000
    for (let n = 1; n <= 50; n += 1) wrote(key, begin + n, n)
    expect(key.startOf(WINDOW, begin + 31)).toEqual({ first: begin + 32, base: 31 })
    expect(key.startOf(WINDOW, begin + 32)).toBeUndefined()
  })

  it('takes the key for its own after two looks that found it unchanged, or from its beginning', () => {
    expect(new KnownKey(EMPTY_HEAD).isSteady).toBe(true)
    const key = new KnownKey(head(1, 1))
    const looks = [1, 2].map(() => {
      key.saw(head(1, 1))
      return key.isSteady
    })
    expect(looks).toEqual([false, true])
    key.saw(head(2, 2))
    expect(key.isSteady).toBe(false)
  })
})
