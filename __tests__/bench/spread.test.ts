import { ratioOf, spreadOf } from '../../bench/load/spread.js'

test('the median of an odd and an even number of rounds, whatever their order', () => {
  expect(spreadOf([30, 10, 20])).toEqual({ median: 20, lowest: 10, highest: 30 })
  expect(spreadOf([40, 10, 30, 20])).toEqual({ median: 25, lowest: 10, highest: 40 })
  expect(spreadOf([7])).toEqual({ median: 7, lowest: 7, highest: 7 })
  expect(() => spreadOf([])).toThrow(RangeError)
})

test('a ratio compares round with round, so that a slow round slows both', () => {
  // The second round had a tenth of the machine.
  expect(ratioOf([200, 20, 220], [100, 10, 100])).toBe(2)
  expect(() => ratioOf([1, 2], [1])).toThrow(RangeError)
})
