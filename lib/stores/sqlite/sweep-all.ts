import { setTimeout as sleep } from 'node:timers/promises'
import type { SweepProgress, SweepResult } from '../store.js'
import type { Statements } from './statements.js'

/** Keys, and events of one key, that a sweep removes before it lets others write. */
const SWEEP_CHUNK = 200
/** How long a process may hold the sweep between two signs of life. */
const SWEEP_LEASE_MICROS = 30_000_000

/**
 * Takes the sweep, if nobody holds it, and removes chunk after chunk, each in a transaction of its own.
 *
 * @param now - the store's clock, in microseconds
 */
export async function sweepAll(
  transact: <T>(work: (statements: Statements) => T) => Promise<T>,
  now: () => number,
  onProgress?: SweepProgress,
): Promise<SweepResult> {
  const claimed = await transact(({ claimSweep }) => {
    const at = now()
    return Number(claimSweep.run(at + SWEEP_LEASE_MICROS, at).changes) === 1
  })
  if (!claimed) return { keys: 0, events: 0, ran: false }
  let keys = 0
  let events = 0
  for (let more = true; more; ) {
    more = await transact((statements) => {
      const expired = statements.expiredKeys.all(now(), SWEEP_CHUNK) as { rkey: Uint8Array }[]
      let budget = SWEEP_CHUNK
      for (const { rkey } of expired) {
        if (budget <= 0) break
        const removed = Number(statements.deleteSomeEvents.run(rkey, rkey, SWEEP_CHUNK - 1).changes)
        events += removed
        budget -= Math.max(removed, 1)
        if (removed >= SWEEP_CHUNK) continue
        statements.deleteKey.run(rkey)
        keys += 1
      }
      statements.setSweepUntil.run(now() + SWEEP_LEASE_MICROS)
      return expired.length > 0
    })
    onProgress?.({ keys, events })
    // Let requests in between two chunks.
    await sleep(0)
  }
  await transact(({ setSweepUntil }) => setSweepUntil.run(now()))
  return { keys, events, ran: true }
}
