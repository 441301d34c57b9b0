import { setTimeout as sleep } from 'node:timers/promises'
import type { SweepProgress, SweepResult } from '../store.js'
import { SWEEP_LEASE_MICROS } from '../sweeper.js'
import { deleteEvents, type Open } from './decide-batch.js'
import { agreeOnUsage, usageStatements } from './usage-statements.js'

/** Keys, events of one key, and rows of usage that a sweep removes before it lets others write. */
const SWEEP_CHUNK = 200

/**
 * Takes the sweep, if nobody holds it, and removes chunk after chunk, each in a transaction of its own.
 *
 * @param now - the store's clock, in microseconds
 */
export async function sweepAll(
  transact: <T>(work: (open: Open) => T) => Promise<T>,
  now: () => number,
  onProgress?: SweepProgress,
): Promise<SweepResult> {
  const claimed = await transact(({ statements }) => {
    const at = now()
    const until = at + SWEEP_LEASE_MICROS
    return Number(statements.claimSweep.run(until, at, until).changes) === 1
  })
  if (!claimed) return { keys: 0, events: 0, ran: false }
  await transact(({ database, usage }) => agreeOnUsage(database, usage))
  let keys = 0
  let events = 0
  for (let more = true; more; ) {
    more = await transact((open) => {
      const { database, statements, usage } = open
      const expired = statements.expiredKeys.all(now(), SWEEP_CHUNK) as { rkey: Uint8Array }[]
      let budget = SWEEP_CHUNK
      for (const { rkey } of expired) {
        if (budget <= 0) break
        const last = statements.nthEvent.get(rkey, SWEEP_CHUNK - 1) as { ts: number } | undefined
        const removed = deleteEvents(open, rkey, -1, last?.ts ?? Number.MAX_SAFE_INTEGER)
        events += removed
        budget -= Math.max(removed, 1)
        if (removed >= SWEEP_CHUNK) continue
        statements.deleteKey.run(rkey)
        keys += 1
      }
      statements.setSweepUntil.run(now() + SWEEP_LEASE_MICROS)
      const old = usage.isEmpty ? 0 : Number(usageStatements(database).sweep.run(now(), SWEEP_CHUNK).changes)
      return expired.length > 0 || old === SWEEP_CHUNK
    })
    onProgress?.({ keys, events })
    // Let requests in between two chunks.
    await sleep(0)
  }
  await transact(({ statements }) => statements.setSweepUntil.run(now()))
  return { keys, events, ran: true }
}
