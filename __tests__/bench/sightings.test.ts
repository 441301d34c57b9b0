import { deniedTooEarly, mostWithin, type Sighting } from '../../bench/exactness/sightings.js'

const WINDOW = 1000

/** Hits that took ten milliseconds each. */
const at = (admitted: boolean, ...times: number[]): Sighting[] =>
  times.map((sent) => ({ sent, answered: sent + 10, admitted }))

describe('hits certainly admitted within a window', () => {
  test('are those whose whole time lies in it', () => {
    expect(mostWithin(at(true, 0, 500, 980), WINDOW)).toBe(3)
    // The last one may have been decided when the first had left.
    expect(mostWithin(at(true, 0, 500, 995), WINDOW)).toBe(2)
  })

  test('may begin at any hit, and denied ones do not count', () => {
    expect(mostWithin([...at(true, 0, 900, 1100, 1200), ...at(false, 950, 1000)], WINDOW)).toBe(3)
    expect(mostWithin([], WINDOW)).toBe(0)
  })
})

describe('hits denied too early', () => {
  test('are those before which the window cannot have been full', () => {
    const admitted = at(true, 0, 100)
    expect(deniedTooEarly([...admitted, ...at(false, 900)], WINDOW, 2)).toBe(0)
    // By 1020 the first has left, whenever both were decided.
    expect(deniedTooEarly([...admitted, ...at(false, 1020)], WINDOW, 2)).toBe(1)
    // At 1005 it may still have been there.
    expect(deniedTooEarly([...admitted, ...at(false, 1005)], WINDOW, 2)).toBe(0)
  })
})
