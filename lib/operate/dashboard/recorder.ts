import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { BatchMessage, DecisionMessage } from '../../limiter/channels.js'
import type { Decision } from '../../limiter/decision.js'
import type { SweepMessage } from '../../stores/publish-sweep.js'
import type { Store } from '../../stores/store.js'
import { BatchRecord } from './batch-record.js'
import { LimitRecord } from './limit-record.js'

/** The most limits that are recorded: names may come from requests. */
const MOST_LIMITS = 50

/** A sweep by this process. */
export interface RecordedSweep {
  readonly at: number
  readonly rows: number
}

/**
 * Records what is decided in one store from now on, in memory of bounded size. It listens to the diagnostics channels, so
 * that a process without it pays nothing, and one with it no more than some counting for each decision.
 */
export class Recorder {
  readonly batches = new BatchRecord()
  #sweep: RecordedSweep | null = null
  readonly #store: Store
  readonly #limits = new Map<string, LimitRecord>()

  /** @param names - limits that are told of from the start, in this order */
  constructor(store: Store, names: Iterable<string>) {
    this.#store = store
    for (const name of names) this.#of(name)
    subscribe('express-sql-rate-limit:decision', this.#onDecision)
    subscribe('express-sql-rate-limit:batch', this.#onBatch)
    subscribe('express-sql-rate-limit:sweep', this.#onSweep)
  }

  close(): void {
    unsubscribe('express-sql-rate-limit:decision', this.#onDecision)
    unsubscribe('express-sql-rate-limit:batch', this.#onBatch)
    unsubscribe('express-sql-rate-limit:sweep', this.#onSweep)
  }

  /** Those named at the start, then others in the order in which they were first met. */
  get limits(): LimitRecord[] {
    return [...this.#limits.values()]
  }

  /** The last sweep by this process, or null. */
  get sweep(): RecordedSweep | null {
    return this.#sweep
  }

  readonly #onDecision = (message: unknown): void => {
    const { decision, store } = message as DecisionMessage
    if (store === this.#store) this.#record(decision, Date.now())
  }

  readonly #onBatch = (message: unknown): void => {
    if ((message as BatchMessage).store === this.#store) this.batches.add(message as BatchMessage, Date.now())
  }

  readonly #onSweep = (message: unknown): void => {
    const { store, rows } = message as SweepMessage
    if (store === this.#store) this.#sweep = { at: Date.now(), rows }
  }

  /** A hit that several limits share is allowed by all of them, or denied by some and counted by none. */
  #record({ outcome, policy, key, limits }: Decision, now: number): void {
    if (outcome === 'degraded') this.#of(policy)?.degraded(key, now)
    else {
      for (const state of limits) {
        if (outcome === 'allowed' || state.denied) this.#of(state.policy)?.decided(outcome, state, now)
      }
    }
  }

  #of(name: string): LimitRecord | undefined {
    let record = this.#limits.get(name)
    if (record === undefined && this.#limits.size < MOST_LIMITS) {
      record = new LimitRecord(name)
      this.#limits.set(name, record)
    }
    return record
  }
}
