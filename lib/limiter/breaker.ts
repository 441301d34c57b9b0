import { inBackground } from '../stores/before-abort.js'
import type { Store } from '../stores/store.js'
import { StoreError, type StoreErrorCode } from '../stores/store-error.js'
import { publishBreaker } from './channels.js'
import type { Logger } from './failure-log.js'

/**
 * Whether a store is asked: `closed`, it is; `open`, it is down and only checked in the background; `half-open`, a check
 * has passed, it is asked again, and its next answer closes the breaker or opens it.
 */
export type BreakerState = 'closed' | 'open' | 'half-open'

/** How a store is, as this process sees it. */
export interface StoreHealth {
  readonly state: BreakerState
  /** Since when it is in this state, as an ISO 8601 time in UTC. */
  readonly since: string
  /** Why the store failed last, null if it never did. */
  readonly lastError: StoreErrorCode | null
  /** How many hits wait for the store at this moment. */
  readonly pending: number
}

/** So many batches in a row must have failed before the store counts as down … */
const LEAST_FAILURES = 3
/** … and over so long a time, in milliseconds: a refused connection fails three times within one. */
const LEAST_MS = 500
/** A batch that had less time than this, in milliseconds, says of the store only that the caller was in a hurry. */
const PATIENCE_MS = 100
/** How long after a check the next one begins, in milliseconds, give or take a fifth, so that processes do not check in step. */
const CHECK_EVERY_MS = 500
/**
 * How long a check may take, in milliseconds. It may have to connect, which takes several round trips. With the wait
 * before the next one, a store is used again within two seconds of its return, whenever in a check that was.
 */
const CHECK_MS = 750

/**
 * A circuit breaker for the batches of one store: once it is open, hits are answered without the store, and a probe of
 * the store in the background, not somebody's request, finds out when it is back.
 *
 * Conflicts are no failures: a store that reports them works. A store that was closed is not down.
 */
export class Breaker {
  readonly #store: Store
  readonly #pending: () => number
  readonly #loggers = new Set<Logger>()
  #state: BreakerState = 'closed'
  #since = Date.now()
  /** When the outage began, on the monotonic clock. */
  #downSince = 0
  #lastError: StoreError | null = null
  #refusal: StoreError | null = null
  #failures = 0
  /** When the first of the failed batches was sent, on the monotonic clock. */
  #failingSince = 0
  /** Whether one of them says something of the store. */
  #telling = false
  #checking = false
  #timer: NodeJS.Timeout | null = null

  /** @param pending - how many hits wait for the store */
  constructor(store: Store, pending: () => number) {
    this.#store = store
    this.#pending = pending
  }

  /** Tells this logger, once however often it is given, when the store goes down and when it is back. */
  tell(logger: Logger): void {
    this.#loggers.add(logger)
  }

  /** Why the store must not be asked, or null when it may be. The same error for all, as there may be very many. */
  get refusal(): StoreError | null {
    return this.#refusal
  }

  get health(): StoreHealth {
    return {
      state: this.#state,
      since: new Date(this.#since).toISOString(),
      lastError: this.#lastError?.code ?? null,
      pending: this.#pending(),
    }
  }

  /** Something failed that may mean that the store is down, or something else: finds out. */
  doubt(): void {
    if (this.#state === 'closed') void this.#check()
  }

  /** A batch was decided. */
  succeeded(): void {
    this.#failures = 0
    this.#telling = false
    if (this.#state !== 'closed') this.#become('closed')
  }

  /**
   * A batch failed.
   *
   * @param sentAt - when it was sent, on the monotonic clock
   */
  failed(error: StoreError, sentAt: number): void {
    const { code } = error
    if (code === 'ERR_STORE_CONFLICT' || code === 'ERR_STORE_CLOSED') return
    this.#note(error)
    const now = performance.now()
    const tells = code !== 'ERR_STORE_TIMEOUT' || now - sentAt >= PATIENCE_MS
    if (this.#state === 'half-open' && tells) this.#become('open')
    if (this.#state !== 'closed') return
    if (this.#failures === 0) this.#failingSince = sentAt
    this.#failures += 1
    this.#telling ||= tells
    if (this.#failures < LEAST_FAILURES || now - this.#failingSince < LEAST_MS) return
    if (this.#telling) this.#become('open')
    else void this.#check()
  }

  async #check(): Promise<void> {
    if (this.#checking) return
    this.#checking = true
    try {
      await inBackground(CHECK_MS, (signal) => this.#store.probe(signal))
      this.#checked(null)
    } catch (error) {
      this.#checked(storeErrorOf(error))
    }
  }

  #checked(error: StoreError | null): void {
    this.#checking = false
    if (error?.code === 'ERR_STORE_CLOSED') {
      // Nothing to find out any more, nor to tell.
      this.#loggers.clear()
      this.succeeded()
    } else if (error !== null) {
      this.#note(error)
      if (this.#state === 'open') {
        this.#refuse(this.#lastError as StoreError)
        this.#checkLater()
      } else this.#become('open')
    } else if (this.#state === 'open') this.#become('half-open')
    else this.succeeded()
  }

  #checkLater(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        // The batch that is under way will tell, and must not wait for a connection behind a check.
        if (this.#state === 'half-open' && this.#pending() > 0) this.#checkLater()
        else void this.#check()
      },
      CHECK_EVERY_MS * (0.8 + Math.random() * 0.4),
    )
    this.#timer.unref()
  }

  #become(state: BreakerState): void {
    const previous = this.#state
    this.#state = state
    this.#since = Date.now()
    this.#failures = 0
    this.#telling = false
    if (state === 'open') this.#refuse(this.#lastError as StoreError)
    else this.#refusal = null
    if (state !== 'closed') this.#checkLater()
    else if (this.#timer !== null) {
      clearTimeout(this.#timer)
      this.#timer = null
    }
    this.#report(previous)
  }

  /** That a store which was too busy is late says nothing new: it must not pass for one that is away. */
  #note(error: StoreError): void {
    const isFailing = this.#failures > 0 || this.#state !== 'closed'
    const isStillBusy = error.code === 'ERR_STORE_TIMEOUT' && this.#lastError?.code === 'ERR_STORE_CAPACITY'
    if (!(isFailing && isStillBusy)) this.#lastError = error
  }

  #refuse(cause: StoreError): void {
    this.#refusal = new StoreError('ERR_STORE_DOWN', `The store is down: ${cause.code}: ${cause.message}`, {
      cause,
    })
  }

  /** A store that is too slow goes from half-open to open again and again: that is one outage, told once. */
  #report(previous: BreakerState): void {
    publishBreaker({ store: this.#store, previous, health: this.health })
    const { name } = this.#store.constructor
    if (previous === 'closed') {
      this.#downSince = performance.now()
      const { code, message } = this.#lastError as StoreError
      const text = `${name} of the rate limiters is down: ${code}: ${message}. It is not asked until a check in the background passes; onStoreError decides.`
      for (const logger of this.#loggers) log(() => logger.error(text))
    } else if (this.#state === 'closed') {
      const seconds = ((performance.now() - this.#downSince) / 1000).toFixed(1)
      const text = `${name} of the rate limiters is back after ${seconds} s, and decides again.`
      for (const logger of this.#loggers) log(() => (logger.warn ? logger.warn(text) : logger.error(text)))
    }
  }
}

/** Any failure of a store, as a `StoreError`. */
export const storeErrorOf = (error: unknown): StoreError =>
  error instanceof StoreError
    ? error
    : new StoreError('ERR_STORE_FAILED', 'The store failed', { cause: error })

function log(write: () => void): void {
  try {
    write()
  } catch {
    // A logger that throws must break nothing.
  }
}
