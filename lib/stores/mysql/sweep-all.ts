import type { KeptUsage } from '../kept-usage.js'
import type { SweepProgress, SweepResult } from '../store.js'
import { SWEEP_LEASE_MICROS } from '../sweeper.js'
import { commit } from './commit.js'
import { claimSweep, ENSURE_SWEEP_ROW, extendSweep } from './removal-statements.js'
import { sweepUnit } from './removal-units.js'
import type { Unit } from './unit-runner.js'
import { agreeOnUsage, sweepUsageUnit } from './usage-units.js'

/** Takes the sweep, if nobody holds it, and removes chunk after chunk; others' work comes in between. */
export async function sweepAll(
  run: <T>(unit: Unit<T>) => Promise<T>,
  usage: KeptUsage,
  onProgress?: SweepProgress,
): Promise<SweepResult> {
  const claimed = await run(async (connection, session, onCommit) => {
    const statements = [...session.begin, ENSURE_SWEEP_ROW, claimSweep(SWEEP_LEASE_MICROS)]
    const results = await commit(connection, onCommit, statements)
    return results.at(-1)?.affectedRows === 1
  })
  if (!claimed) return { keys: 0, events: 0, ran: false }
  await run((connection, session) => agreeOnUsage(connection, session, usage))
  let keys = 0
  let events = 0
  for (let more = true; more; ) {
    const chunk = await run((connection, session, onCommit) =>
      sweepUnit(connection, session, onCommit, usage, SWEEP_LEASE_MICROS),
    )
    keys += chunk.keys
    events += chunk.events
    more = chunk.more
    onProgress?.({ keys, events })
  }
  for (let more = !usage.isEmpty; more; ) {
    more = await run((connection, session, onCommit) =>
      sweepUsageUnit(connection, session, onCommit, extendSweep(SWEEP_LEASE_MICROS)),
    )
  }
  await run(async (connection, session, onCommit) => {
    await commit(connection, onCommit, [...session.begin, extendSweep(0)])
  })
  return { keys, events, ran: true }
}
