import type { StoreError } from '../stores/store-error.js'
import type { StoreErrorRule } from './behaviour-options.js'

/** Where a limiter says that its store fails, and what it warns of. `console` is one. */
export interface Logger {
  error(message: string): void
  /** For warnings of docs/warnings.md, and that a store is back; `error` gets them where this is missing. */
  warn?(message: string): void
}

/** A failing store fails for every request: it is told once in so many milliseconds. */
const INTERVAL_MS = 30_000

const EFFECTS: Record<StoreErrorRule, string> = {
  allow: 'are let through uncounted',
  deny: 'are refused with 503',
  local: 'are limited by what this process counts',
}

/** Reports store failures of one limiter, at most one line per interval, with how many there were since the last. */
export class FailureLog {
  readonly #limiter: string
  readonly #logger: Logger
  #lastReport = Number.NEGATIVE_INFINITY
  #unreported = 0

  constructor(limiter: string, logger: Logger) {
    this.#limiter = limiter
    this.#logger = logger
  }

  report(error: StoreError, rule: StoreErrorRule): void {
    const now = performance.now()
    if (now - this.#lastReport < INTERVAL_MS) {
      this.#unreported += 1
      return
    }
    this.#lastReport = now
    const since = this.#unreported === 0 ? '' : ` ${this.#unreported} more since the last report.`
    this.#unreported = 0
    try {
      this.#logger.error(
        `Rate limiter "${this.#limiter}": ${error.code}: ${error.message}. Requests ${EFFECTS[rule]} until the store is back.${since}`,
      )
    } catch {
      // A logger that throws must not fail the request.
    }
  }
}
