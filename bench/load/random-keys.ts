/** How many draws are made beforehand; then they repeat. */
const DRAWS = 1 << 16

/**
 * Keys drawn evenly from so many, the same ones in the same order for everyone.
 *
 * @returns what gives the next key
 */
export function randomKeys(count: number, prefix = 'client'): () => string {
  const keys = Array.from({ length: count }, (_, i) => `${prefix}:${i}`)
  const draws = new Uint32Array(DRAWS)
  let state = 1
  for (let i = 0; i < DRAWS; i += 1) {
    // A linear congruential generator (Numerical Recipes); its high bits are the random ones.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    draws[i] = Math.floor((state / 2 ** 32) * count)
  }
  let next = 0
  return () => {
    next = (next + 1) & (DRAWS - 1)
    return keys[draws[next] as number] as string
  }
}

/** Every key once, in order, and then again. */
export function keysInTurn(count: number, prefix = 'client', first = 0): () => string {
  const keys = Array.from({ length: count }, (_, i) => `${prefix}:${first + i}`)
  let next = -1
  return () => {
    next = (next + 1) % count
    return keys[next] as string
  }
}
