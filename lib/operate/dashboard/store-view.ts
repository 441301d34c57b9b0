import type { StoreHealth } from '../../limiter/breaker.js'
import { Lane } from '../../limiter/lane.js'
import { withinDeadline } from '../../stores/before-abort.js'
import type { Store, StoreInspection } from '../../stores/store.js'
import type { BatchSummary } from './batch-record.js'
import type { Recorder } from './recorder.js'

/** How long the store may take to tell of itself, and how long that is believed, in milliseconds. */
const INSPECT_MS = 2_000
const FRESH_MS = 10_000

/** How the store is, for people. */
export interface StoreState {
  /** The class of the store. */
  readonly kind: string
  readonly health: StoreHealth
  readonly batches: BatchSummary
  /** Null until it is known, and where the store tells nothing of itself. */
  readonly inspection: StoreInspection | null
  /** When a sweep was last finished, by any process as far as that is known; null when none was. */
  readonly sweptAt: number | null
  /** Rows that the last sweep of this process removed; null when it made none. */
  readonly sweptRows: number | null
}

/** Asks the store how it is, seldom, and only while somebody looks. */
export class StoreView {
  readonly #store: Store
  readonly #recorder: Recorder
  #inspection: StoreInspection | null = null
  #inspectedAt = Number.NEGATIVE_INFINITY
  #running = false

  constructor(store: Store, recorder: Recorder) {
    this.#store = store
    this.#recorder = recorder
  }

  state(now: number): StoreState {
    const { sweep, batches } = this.#recorder
    const sweptAt = Math.max(sweep?.at ?? 0, this.#inspection?.sweptAt ?? 0)
    return {
      kind: this.#store.constructor.name,
      health: this.#health,
      batches: batches.summary(now),
      inspection: this.#inspection,
      sweptAt: sweptAt === 0 ? null : sweptAt,
      sweptRows: sweep?.rows ?? null,
    }
  }

  get #health(): StoreHealth {
    return Lane.of(this.#store).storeHealth
  }

  /** Never rejects. A store that is down is left alone. */
  async refresh(): Promise<void> {
    const { inspect } = this.#store
    const isDue = performance.now() - this.#inspectedAt >= FRESH_MS
    if (inspect === undefined || this.#running || !isDue || this.#health.state !== 'closed') return
    this.#running = true
    try {
      this.#inspection = await withinDeadline(INSPECT_MS, (signal) => inspect.call(this.#store, signal))
    } catch {
      this.#inspection = null
    } finally {
      this.#inspectedAt = performance.now()
      this.#running = false
    }
  }
}
