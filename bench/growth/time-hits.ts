import type { Decision, Limiter } from 'express-sql-rate-limit'

/** Hits one key after another, alone, and gives what each took, in milliseconds. */
export async function timeHits(
  limiter: Limiter,
  keys: readonly string[],
  expected: Decision['outcome'] = 'allowed',
): Promise<number[]> {
  const times: number[] = []
  for (const key of keys) {
    const begun = performance.now()
    const decision = await limiter.hit(key)
    times.push(performance.now() - begun)
    check(decision, expected)
  }
  return times
}

/** Lets callers hit again and again for some milliseconds, and gives what each hit took. All must be admitted. */
export async function timeCallers(
  limiter: Limiter,
  nextKey: () => string,
  callers: number,
  millis: number,
): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + millis
  const call = async (): Promise<void> => {
    for (let sent = performance.now(); sent < end; sent = performance.now()) {
      const decision = await limiter.hit(nextKey())
      times.push(performance.now() - sent)
      check(decision, 'allowed')
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return times
}

/** A limiter as a load wants it: nothing but the hit, which must be admitted. */
export const admittedHit =
  (limiter: Limiter) =>
  async (key: string): Promise<boolean> => {
    const decision = await limiter.hit(key)
    check(decision, 'allowed')
    return decision.allowed
  }

/** A figure of anything but the decisions that are meant would be a figure of something else. */
function check({ outcome, policy, key }: Decision, expected: Decision['outcome']): void {
  if (outcome !== expected) throw new Error(`Expected ${policy}:${key} to be ${expected}, it was ${outcome}`)
}
