import { beforeAbort } from '../stores/before-abort.js'
import type { Batch, Hit, Refusal, Store, Verdict } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import { Breaker, storeErrorOf } from './breaker.js'
import { publishBatch } from './channels.js'
import { DeadlineTimer } from './deadline-timer.js'
import { Quarantine } from './quarantine.js'
import { QueueShares } from './queue-shares.js'
import { rejectNextTurn } from './reject-next-turn.js'

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

/**
 * Group commit: while one batch is with the store, arrivals queue, and the next batch takes them all. An idle
 * batcher adds no wait, and a busy one makes its batches larger instead of its queue longer.
 *
 * Every hit is answered by its deadline, whatever the store does. When all hits of a batch have had theirs, the
 * store is told to give the batch up. While the store is down, hits are answered without it, at once.
 */
export class Batcher {
  /** Knows whether the store is down. */
  readonly breaker: Breaker
  readonly #store: Store
  readonly #takeRefusals: (most: number) => Refusal[]
  #queue: Pending[] = []
  readonly #shares = new QueueShares()
  readonly #quarantine: Quarantine
  #inFlight: readonly Pending[] = []
  #giveUp = new AbortController()
  readonly #timer = new DeadlineTimer((lost) => this.#expire(lost))
  #running = false

  /** @param takeRefusals - attempts refused from memory, to be counted with the next batch */
  constructor(store: Store, takeRefusals: (most: number) => Refusal[]) {
    this.#store = store
    this.#takeRefusals = takeRefusals
    this.breaker = new Breaker(store, () => this.#queue.length + this.#inFlight.length)
    this.#quarantine = new Quarantine(store, this.breaker, () => this.#start())
  }

  /**
   * Rejects with a `StoreError` when the store fails or the time is over; at once when the store is down, or when
   * `maxPending` hits are waiting.
   *
   * @param deadline - on the monotonic clock, in milliseconds
   */
  submit(hit: Hit, deadline: number, maxPending: number): Promise<Answer> {
    const { refusal } = this.breaker
    if (refusal !== null) return rejectNextTurn(refusal)
    if (this.#queue.length >= maxPending) {
      const error = new StoreError(
        'ERR_STORE_CAPACITY',
        `${this.#queue.length} hits are waiting for the store, no more than \`maxPending\` may`,
      )
      return rejectNextTurn(error)
    }
    if (deadline <= performance.now()) return rejectNextTurn(timedOut())
    return new Promise((resolve, reject) => {
      const pending = { hit, deadline, extended: false, answered: false, resolve, reject }
      this.#queue.push(pending)
      this.#shares.add(pending)
      this.#timer.watch(deadline)
      this.#start()
    })
  }

  /** What a hit has to wait for before it is submitted, or null when it may be at once: see `QueueShares`. */
  turn({ charges }: Hit, deadline: number, maxPending: number): Promise<number> | null {
    if (this.breaker.refusal !== null) return null
    return this.#shares.turn(this.#queue, charges, deadline, maxPending)
  }

  /** Counts the refusals that no batch has taken along. While the store is down they wait. */
  flush(): void {
    if (this.breaker.refusal === null) this.#start()
  }

  #start(): void {
    if (this.#running) return
    this.#running = true
    // After the current callback, so that hits made together go together.
    queueMicrotask(() => this.#run())
  }

  async #run(): Promise<void> {
    for (;;) {
      const { refusal } = this.breaker
      if (refusal !== null) {
        this.#refuseAll(refusal)
        break
      }
      const batch = this.#quarantine.isEmpty ? this.#take() : this.#takeFree()
      const refusals = this.#takeRefusals(MOST_HITS).filter(({ key }) => !this.#quarantine.has(key))
      if (batch.length === 0 && refusals.length === 0) break
      await this.#decide(batch, refusals)
    }
    this.#running = false
    // Some may wait for a test of their keys.
    if (this.#queue.length === 0) this.#timer.rest()
  }

  #take(): Pending[] {
    const batch = this.#queue.splice(0, MOST_HITS)
    for (const { hit } of batch) this.#shares.remove(hit)
    if (this.#queue.length === 0) this.#shares.clear()
    return batch
  }

  /** While some keys may be locked by others: takes hits on other keys. */
  #takeFree(): Pending[] {
    const batch: Pending[] = []
    this.#queue = this.#queue.filter((pending) => {
      const { hit } = pending
      const refusal = this.#quarantine.refusal(hit)
      // In the next turn of the event loop: see `rejectNextTurn`.
      if (refusal !== null) setImmediate(() => reject(pending, refusal))
      else if (batch.length < MOST_HITS && !this.#quarantine.holds(hit)) batch.push(pending)
      else return true
      this.#shares.remove(hit)
      return false
    })
    this.#shares.answered()
    return batch
  }

  #refuseAll(error: StoreError): void {
    for (const pending of this.#queue.splice(0)) reject(pending, error)
    this.#shares.clear()
    this.#shares.answered()
  }

  async #decide(batch: readonly Pending[], refusals: readonly Refusal[]): Promise<void> {
    this.#inFlight = batch
    if (this.#giveUp.signal.aborted) this.#giveUp = new AbortController()
    const { signal } = this.#giveUp
    // A batch of refusals only has nobody who waits for it, but must not hold up others for ever.
    const timer = batch.length === 0 ? setTimeout(() => this.#abort(), REFUSALS_MS) : undefined
    const sentAt = performance.now()
    const asked = { hits: batch.map(({ hit }) => hit), refusals }
    const decided = this.#ask(asked, signal)
    try {
      const verdicts = await beforeAbort(decided, signal)
      this.breaker.succeeded()
      batch.forEach((pending, i) => {
        if (pending.answered) return
        pending.answered = true
        pending.resolve({ verdict: verdicts[i] as Verdict, sentAt })
      })
      publishBatch(this.#store, asked, sentAt, null)
    } catch (error) {
      for (const pending of batch) reject(pending, error)
      const failure = storeErrorOf(signal.aborted ? await reasonOf(decided, error) : error)
      this.breaker.failed(failure, sentAt)
      publishBatch(this.#store, asked, sentAt, failure)
      if (signal.aborted && this.breaker.refusal === null) this.#quarantine.suspect(keysOf(batch, refusals))
    } finally {
      clearTimeout(timer)
      this.#inFlight = []
      this.#shares.answered()
    }
  }

  /** A store that throws rejects. */
  async #ask(batch: Batch, signal: AbortSignal): Promise<Verdict[]> {
    return this.#store.decide(batch, signal)
  }

  /**
   * A timer that fires late tells that this process stood still, not that the store did. Timers run before I/O, so the
   * answers may be waiting in the socket: each hit is given the lost time back, once.
   */
  #extend(lost: number): void {
    for (const pending of [...this.#inFlight, ...this.#queue]) {
      if (pending.extended) continue
      pending.extended = true
      pending.deadline += lost
    }
  }

  #abort(): void {
    this.#giveUp.abort(timedOut())
  }

  #expire(lost: number): void {
    const now = performance.now()
    if (lost > 0) this.#extend(lost)
    let next = Number.POSITIVE_INFINITY
    const expire = (pending: Pending): void => {
      if (pending.answered) return
      if (pending.deadline > now) next = Math.min(next, pending.deadline)
      else reject(pending, timedOut())
    }
    this.#inFlight.forEach(expire)
    if (this.#inFlight.length > 0 && this.#inFlight.every(({ answered }) => answered)) this.#abort()
    this.#queue.forEach(expire)
    this.#queue = this.#queue.filter(({ hit, answered }) => {
      if (answered) this.#shares.remove(hit)
      return !answered
    })
    this.#shares.answered(lost)
    if (next < Number.POSITIVE_INFINITY) this.#timer.watch(next)
  }
}

function keysOf(batch: readonly Pending[], refusals: readonly Refusal[]): string[] {
  const hits = batch.flatMap(({ hit }) => hit.charges)
  return [...hits, ...refusals].map(({ key }) => key)
}

/** Answers a hit, unless it is answered already. */
function reject(pending: Pending, error: unknown): void {
  if (pending.answered) return
  pending.answered = true
  pending.reject(error)
}

/**
 * Why a store that was told to give up had not answered by then: it may know more than that the time is over, and says
 * so at once if it heeds its signal.
 */
async function reasonOf(decided: Promise<unknown>, reason: unknown): Promise<unknown> {
  const said = decided.then(
    () => reason,
    (error) => error,
  )
  return Promise.race([said, new Promise((resolve) => setImmediate(resolve, reason))])
}

const timedOut = (): StoreError => new StoreError('ERR_STORE_TIMEOUT', 'The store did not answer in time')
