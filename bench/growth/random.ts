/** Whole numbers from 0 to below `count`, evenly and the same in every run: the Lehmer generator of Park and Miller. */
export function randomNumbers(seed = 1): (count: number) => number {
  let state = seed
  return (count) => {
    state = (state * 48_271) % 2_147_483_647
    return state % count
  }
}
