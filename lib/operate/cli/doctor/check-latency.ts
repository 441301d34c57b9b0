import { randomUUID } from 'node:crypto'
import { storageKey } from '../../../limiter/storage-key.js'
import { withinDeadline } from '../../../stores/before-abort.js'
import type { Policy, Store } from '../../../stores/store.js'
import type { StoreError } from '../../../stores/store-error.js'
import type { Reader } from '../reader.js'
import { type Finding, ok, problem, warning } from './finding.js'

/** How often something is timed, after once that is not. */
const TIMES = 15
/** A decision may take so long before the doctor gives up. */
const DECISION_MS = 5_000
/** The limiter's default `timeoutMs` is 250. */
const SLOW_DECISION_MS = 100
const SLOW_ROUND_TRIP_MS = 20

/** How long an empty statement takes: the way there and back. */
export async function checkRoundTrip(reader: Reader): Promise<Finding> {
  const times = await timed(() => reader.query('SELECT 1', []))
  const found = `A round trip takes ${ms(times.median)}, at most ${ms(times.longest)} of ${TIMES}.`
  if (times.median < SLOW_ROUND_TRIP_MS) return ok('round_trip', found)
  return warning(
    'round_trip',
    found,
    'A decision takes two or three of them, however fast the server is. Run the application in the same region or network as its database.',
  )
}

/** How long a decision takes, on a key of the doctor's own that is removed again; so it proves that they work. */
export async function checkDecision(store: Store): Promise<Finding> {
  const policy: Policy = {
    ...{ name: 'doctor', limit: 1_000_000, windowSeconds: 60, windowMicros: 60e6, keepMicros: 60e6 },
    ...{ algorithm: 'sliding-window', audit: false },
  }
  const key = storageKey(policy, randomUUID())
  const hits = [{ charges: [{ key, policy }], cost: 1 }]
  try {
    const times = await timed(() =>
      withinDeadline(DECISION_MS, (signal) => store.decide({ hits, refusals: [] }, signal)),
    )
    await store.reset([key])
    const found = `A decision takes ${ms(times.median)}, at most ${ms(times.longest)} of ${TIMES}.`
    if (times.median < SLOW_DECISION_MS) return ok('decision', found)
    return warning(
      'decision',
      found,
      'The limiter waits 250 ms (timeoutMs), and lets requests through uncounted after that. If a round trip above is fast, the disk is slow, to which each commit is flushed; or the server is overloaded. Until that is mended, raise timeoutMs.',
    )
  } catch (error) {
    const { code, message } = error as StoreError
    return problem(
      'decision',
      `A decision failed: ${message} (${code}).`,
      'While that lasts the limiter does what onStoreError says: by default it lets requests through uncounted. The findings above may say why.',
    )
  }
}

async function timed(work: () => Promise<unknown>): Promise<{ median: number; longest: number }> {
  await work()
  const times: number[] = []
  for (let i = 0; i < TIMES; i += 1) {
    const begun = performance.now()
    await work()
    times.push(performance.now() - begun)
  }
  times.sort((a, b) => a - b)
  return { median: times[Math.floor(TIMES / 2)] as number, longest: times.at(-1) as number }
}

const ms = (millis: number): string => `${millis.toFixed(millis < 10 ? 1 : 0)} ms`
