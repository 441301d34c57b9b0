import type { BatchMessage } from '../../limiter/channels.js'

/** How a store did with the batches of the last minute; null figures where there were none. */
export interface BatchSummary {
  /** Batches that were decided; at the most the last 1,024 are looked at. */
  readonly batches: number
  readonly failed: number
  /** Milliseconds from sending a batch to its answer: half of them took no longer, 99 of 100. */
  readonly p50: number | null
  readonly p99: number | null
  /** Hits in a batch. */
  readonly meanHits: number | null
  readonly mostHits: number | null
}

const MOST = 1024
const SPAN_MS = 60_000

/** Remembers the last batches of a store, in rings of fixed size. */
export class BatchRecord {
  readonly #at = new Float64Array(MOST)
  /** Not a number for one that failed. */
  readonly #milliseconds = new Float64Array(MOST)
  readonly #hits = new Uint16Array(MOST)
  #count = 0

  add({ milliseconds, hits, outcome }: BatchMessage, now: number): void {
    const i = this.#count % MOST
    this.#at[i] = now
    this.#milliseconds[i] = outcome === 'decided' ? milliseconds : Number.NaN
    this.#hits[i] = hits
    this.#count += 1
  }

  summary(now: number): BatchSummary {
    const times: number[] = []
    let failed = 0
    let hits = 0
    let mostHits = 0
    for (let i = 0; i < Math.min(this.#count, MOST); i += 1) {
      if ((this.#at[i] as number) <= now - SPAN_MS) continue
      const milliseconds = this.#milliseconds[i] as number
      if (Number.isNaN(milliseconds)) failed += 1
      else {
        times.push(milliseconds)
        hits += this.#hits[i] as number
        mostHits = Math.max(mostHits, this.#hits[i] as number)
      }
    }
    times.sort((a, b) => a - b)
    const isEmpty = times.length === 0
    return {
      batches: times.length,
      failed,
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
      meanHits: isEmpty ? null : hits / times.length,
      mostHits: isEmpty ? null : mostHits,
    }
  }
}

/** The smallest of the sorted numbers that this part of them does not exceed. */
const quantile = (sorted: readonly number[], part: number): number | null =>
  sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? null
