import { beforeAbort, STALL_MS } from '../stores/before-abort.js'
import type { Hit, Refusal, Store, Verdict } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'

/** A verdict, and when its query was sent on this process's monotonic clock, in milliseconds. */
export interface Answer {
  readonly verdict: Verdict
  readonly sentAt: number
}

interface Pending {
  readonly hit: Hit
  /** On the monotonic clock, in milliseconds. */
  deadline: number
  /** Whether the deadline was moved already. */
  extended: boolean
  answered: boolean
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** The most hits in one batch: it bounds the size of a packet and how long its locks are held. */
const MOST_HITS = 500
/** How long a batch may take that only counts refusals, in milliseconds. */
const REFUSALS_MS = 1000
/** The most hits that may wait. More than that is an overload, and is answered as one, at once. */
const MOST_PENDING = 10_000

/**
 * Group commit: while one batch is with the store, arrivals queue, and the next batch takes them all. An idle
 * batcher adds no wait, and a busy one makes its batches larger instead of its queue longer.
 *
 * Every hit is answered by its deadline, whatever the store does. When all hits of a batch have had theirs, the
 * store is told to give the batch up.
 */
export class Batcher {
  readonly #store: Store
  readonly #takeRefusals: (most: number) => Refusal[]
  #queue: Pending[] = []
  #inFlight: readonly Pending[] = []
  #giveUp = new AbortController()
  #running = false
  #timer: NodeJS.Timeout | null = null
  #timerAt = 0

  /** @param takeRefusals - attempts refused from memory, to be counted with the next batch */
  constructor(store: Store, takeRefusals: (most: number) => Refusal[]) {
    this.#store = store
    this.#takeRefusals = takeRefusals
  }

  /** Rejects with a `StoreError` when the store fails or the time is over. */
  submit(hit: Hit, timeoutMs: number): Promise<Answer> {
    if (this.#queue.length >= MOST_PENDING) {
      const error = new StoreError(
        'ERR_STORE_CAPACITY',
        `More than ${MOST_PENDING} hits are waiting for the store`,
      )
      return Promise.reject(error)
    }
    return new Promise((resolve, reject) => {
      const deadline = performance.now() + timeoutMs
      this.#queue.push({ hit, deadline, extended: false, answered: false, resolve, reject })
      this.#watch(deadline)
      this.#start()
    })
  }

  /** Counts the refusals that no batch has taken along. */
  flush(): void {
    this.#start()
  }

  #start(): void {
    if (this.#running) return
    this.#running = true
    // After the current callback, so that hits made together go together.
    queueMicrotask(() => this.#run())
  }

  async #run(): Promise<void> {
    for (;;) {
      const batch = this.#queue.splice(0, MOST_HITS).filter(({ answered }) => !answered)
      const refusals = this.#takeRefusals(MOST_HITS)
      if (batch.length === 0 && refusals.length === 0) {
        if (this.#queue.length > 0) continue
        break
      }
      await this.#decide(batch, refusals)
    }
    this.#running = false
    this.#unwatch()
  }

  async #decide(batch: readonly Pending[], refusals: readonly Refusal[]): Promise<void> {
    this.#inFlight = batch
    this.#giveUp = new AbortController()
    const { signal } = this.#giveUp
    // A batch of refusals only has nobody who waits for it, but must not hold up others for ever.
    const timer = batch.length === 0 ? setTimeout(() => this.#abort(), REFUSALS_MS) : undefined
    const sentAt = performance.now()
    try {
      const decided = this.#store.decide({ hits: batch.map(({ hit }) => hit), refusals }, signal)
      const verdicts = await beforeAbort(decided, signal)
      batch.forEach((pending, i) => {
        if (pending.answered) return
        pending.answered = true
        pending.resolve({ verdict: verdicts[i] as Verdict, sentAt })
      })
    } catch (error) {
      for (const pending of batch) {
        if (pending.answered) continue
        pending.answered = true
        pending.reject(error)
      }
    } finally {
      clearTimeout(timer)
      this.#inFlight = []
    }
  }

  /**
   * A timer that fires late tells that this process stood still, not that the store did. Timers run before I/O, so the
   * answers may be waiting in the socket: each hit is given the lost time back, once.
   */
  #extend(lateness: number): void {
    for (const pending of [...this.#inFlight, ...this.#queue]) {
      if (pending.extended) continue
      pending.extended = true
      pending.deadline += lateness
    }
  }

  #abort(): void {
    this.#giveUp.abort(timedOut())
  }

  /** One timer for the earliest deadline of all, not one a hit. */
  #watch(deadline: number): void {
    if (this.#timer !== null) {
      if (deadline >= this.#timerAt) return
      clearTimeout(this.#timer)
    }
    this.#timerAt = deadline
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, Math.ceil(deadline - performance.now())))
  }

  #unwatch(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #expire(): void {
    this.#timer = null
    const now = performance.now()
    const lateness = now - this.#timerAt
    if (lateness > STALL_MS) this.#extend(lateness)
    let next = Number.POSITIVE_INFINITY
    const expire = (pending: Pending): void => {
      if (pending.answered) return
      if (pending.deadline > now) {
        next = Math.min(next, pending.deadline)
        return
      }
      pending.answered = true
      pending.reject(timedOut())
    }
    this.#inFlight.forEach(expire)
    if (this.#inFlight.length > 0 && this.#inFlight.every(({ answered }) => answered)) this.#abort()
    this.#queue.forEach(expire)
    this.#queue = this.#queue.filter(({ answered }) => !answered)
    if (next < Number.POSITIVE_INFINITY) this.#watch(next)
  }
}

const timedOut = (): StoreError => new StoreError('ERR_STORE_TIMEOUT', 'The store did not answer in time')
