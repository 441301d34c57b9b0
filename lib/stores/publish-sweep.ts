import { channel } from 'node:diagnostics_channel'
import type { Store, SweepResult } from './store.js'

/** What is published on `express-sql-rate-limit:sweep`, once a sweep has ended that was this process's to do. */
export interface SweepMessage {
  readonly store: Store
  /** Rows removed: keys and their events. */
  readonly rows: number
  readonly milliseconds: number
}

const sweeps = channel('express-sql-rate-limit:sweep')

/** Runs a sweep and publishes what it did. One that another process held, or that failed, is not published. */
export async function publishSweep(store: Store, sweep: () => Promise<SweepResult>): Promise<SweepResult> {
  const startedAt = performance.now()
  const swept = await sweep()
  if (swept.ran && sweeps.hasSubscribers) {
    const rows = swept.keys + swept.events
    sweeps.publish({ store, rows, milliseconds: performance.now() - startedAt } satisfies SweepMessage)
  }
  return swept
}
