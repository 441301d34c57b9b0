import { type Admission, checkHistory } from './check-history.js'
import type { Denial } from './record-denials.js'

const LIMIT = 2
const WINDOW = 1000
const admissions = (...times: number[]): Admission[] => times.map((ts) => ({ key: 'a', ts, hits: 1 }))
const denials = (...times: number[]): Denial[] => times.map((at) => ({ key: 'a', at }))
const check = (log: Admission[], denied: Denial[] = [], ...unknown: { from: number; to: number }[]) =>
  checkHistory(
    log,
    denied,
    LIMIT,
    WINDOW,
    unknown.map((each) => ({ ...each, key: 'a', hits: 1 })),
  )

describe('a history', () => {
  test.each<[string, string[]]>([
    ['of the limit in each window', check(admissions(1, 2, 1001, 1002, 2001))],
    ['with a denial at its limit', check(admissions(1, 2), denials(2, 3, 1000))],
    ['of nothing', check([])],
    ['of other keys', check([...admissions(1, 2), { key: 'b', ts: 3, hits: 2 }])],
    [
      'where one that was given back made room',
      check([{ key: 'a', ts: 1, hits: 2, gone: { from: 5, to: 7 } }, ...admissions(6, 8)]),
    ],
    [
      'that was denied while another was being given back',
      check([{ key: 'a', ts: 1, hits: 2, gone: { from: 5, to: 7 } }], denials(6, 7)),
    ],
    [
      'that was denied for one of which nobody was told',
      check(admissions(1), denials(9), { from: 5, to: 20 }),
    ],
  ])('%s is exact', (_, faults) => {
    expect(faults).toEqual([])
  })

  test.each<[string, string[], string]>([
    ['with one too many', check(admissions(1, 2, 1000)), 'a: 3 of 2 inside the window that ends at 1000'],
    [
      'with too many at one instant',
      check([{ key: 'a', ts: 5, hits: 3 }]),
      'a: 3 of 2 inside the window that ends at 5',
    ],
    [
      'with a denial too early',
      check(admissions(1), denials(9)),
      'a: denied at 9 with 1 of 2 inside the window',
    ],
    [
      'with a denial too late',
      check(admissions(1, 2), denials(1001)),
      'a: denied at 1001 with 1 of 2 inside the window',
    ],
    ['with a denial of nothing', check([], denials(1)), 'a: denied at 1 with 0 of 2 inside the window'],
    [
      'with room taken before it was given back',
      check([{ key: 'a', ts: 1, hits: 2, gone: { from: 5, to: 7 } }, ...admissions(4)]),
      'a: 3 of 2 inside the window that ends at 4',
    ],
    [
      'that was denied after all was given back',
      check([{ key: 'a', ts: 1, hits: 2, gone: { from: 5, to: 7 } }], denials(8)),
      'a: denied at 8 with 0 of 2 inside the window',
    ],
    [
      'that was denied long after what nobody was told of',
      check([], denials(2000), { from: 5, to: 20 }, { from: 5, to: 20 }),
      'a: denied at 2000 with 0 of 2 inside the window',
    ],
  ])('%s is not', (_, faults, fault) => {
    expect(faults).toEqual([fault])
  })
})

test('a history of a million rows is judged, and its two faults are found', () => {
  const log: Admission[] = []
  const denied: Denial[] = []
  const rows = 500_000
  // The first half on one key: two in a window, a denial between them, in no order.
  for (let i = 0; i < rows; i += 1) {
    const place = (i * 7919) % rows
    const key = place < rows / 2 ? 'hot' : `key ${place % 5000}`
    const ts = place * (WINDOW / LIMIT)
    log.push({ key, ts, hits: key === 'hot' ? 1 : LIMIT })
    if (place > 0) denied.push({ key, at: ts + 1 })
  }
  log.push({ key: 'hot', ts: 0, hits: 1 })
  denied.push({ key: 'hot', at: 1e12 })
  expect(checkHistory(log, denied, LIMIT, WINDOW)).toEqual([
    'hot: 3 of 2 inside the window that ends at 500',
    'hot: denied at 1000000000000 with 0 of 2 inside the window',
  ])
}, 120_000)
