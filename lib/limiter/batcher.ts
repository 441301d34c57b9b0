import { beforeAbort } from '../stores/before-abort.js'
import type { Batch, Hit, Refusal, Store, Verdict } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import { Breaker, storeErrorOf } from './breaker.js'
import { publishBatch } from './channels.js'
import { DeadlineTimer } from './deadline-timer.js'
import { overload, Pace, timeout } from './pace.js'
import { type Answer, type Pending, rejectPending } from './pending.js'
import { Quarantine } from './quarantine.js'
import { rejectNextTurn } from './reject-next-turn.js'
import { Turnaround } from './turnaround.js'
import { MOST_HITS, WaitingLine } from './waiting-line.js'

/** The most keys of which one batch counts refusals. */
const MOST_REFUSALS = 500
/** How long a batch may take that only counts refusals, in milliseconds. */
const REFUSALS_MS = 1000
/** How long after it ended a flood may still be why the store is late, in milliseconds: it works off what was given up. */
const FLOOD_MS = 1000

/**
 * Group commit: while one batch is with the store, arrivals queue, and the next batch takes them all. An idle
 * batcher adds no wait, and a busy one makes its batches larger instead of its queue longer. Whether the next batch goes
 * before or after the answers of the last depends on which is worth more: see `Turnaround`.
 *
 * Every hit is answered by its deadline, whatever the store does. When all hits of a batch have had theirs, the
 * store is told to give the batch up. While the store is down, hits are answered without it, at once.
 */
export class Batcher {
  /** Knows whether the store is down. */
  readonly breaker: Breaker
  readonly #store: Store
  readonly #takeRefusals: (most: number) => Refusal[]
  readonly #line = new WaitingLine()
  readonly #pace = new Pace()
  readonly #turnaround = new Turnaround()
  readonly #quarantine: Quarantine
  #inFlight: readonly Pending[] = []
  #giveUp = new AbortController()
  readonly #timer = new DeadlineTimer((lost) => this.#expire(lost))
  #running = false
  /** When more last waited than a batch takes, on the monotonic clock. */
  #floodedAt = Number.NEGATIVE_INFINITY

  /** @param takeRefusals - attempts refused from memory, to be counted with the next batch */
  constructor(store: Store, takeRefusals: (most: number) => Refusal[]) {
    this.#store = store
    this.#takeRefusals = takeRefusals
    this.breaker = new Breaker(store, () => this.#waiting)
    this.#quarantine = new Quarantine(store, this.breaker, () => this.#start())
  }

  /**
   * Rejects with a `StoreError` when the store fails or the time is over; at once when the store is down, or when
   * `maxPending` hits are waiting.
   *
   * @param deadline - on the monotonic clock, in milliseconds
   * @param askedAt - since when its caller waits, on the same clock
   */
  submit(hit: Hit, deadline: number, maxPending: number, askedAt = performance.now()): Promise<Answer> {
    const { refusal } = this.breaker
    if (refusal !== null) return rejectNextTurn(refusal)
    if (this.#line.length >= maxPending) {
      const error = new StoreError(
        'ERR_STORE_CAPACITY',
        `${this.#line.length} hits are waiting for the store, no more than \`maxPending\` may`,
      )
      return rejectNextTurn(error)
    }
    if (deadline <= performance.now()) return rejectNextTurn(this.#late(askedAt))
    return new Promise((resolve, reject) => {
      this.#line.join({ hit, askedAt, deadline, extended: false, answered: false, resolve, reject })
      if (this.#waiting >= MOST_HITS) this.#floodedAt = performance.now()
      this.#timer.watch(deadline)
      this.#start()
    })
  }

  /** What a hit has to wait for before it is submitted, or null when it may be at once: see `QueueShares`. */
  turn(hit: Hit, deadline: number, maxPending: number): Promise<number> | null {
    return this.breaker.refusal === null ? this.#line.turn(hit, deadline, maxPending) : null
  }

  /** Counts the refusals that no batch has taken along. While the store is down they wait. */
  flush(): void {
    if (this.breaker.refusal === null) this.#start()
  }

  #start(): void {
    if (this.#running) return
    this.#running = true
    // After the current callback, so that hits made together go together. Not `queueMicrotask`: fake timers stop it.
    Promise.resolve().then(() => this.#run())
  }

  async #run(): Promise<void> {
    for (;;) {
      const { refusal } = this.breaker
      if (refusal !== null) {
        this.#refuseAll(refusal)
        break
      }
      this.#line.shed(performance.now() + this.#pace.batchMs, overload)
      const batch = this.#quarantine.isEmpty ? this.#line.take() : this.#line.takeFree(this.#quarantine)
      const refusals = this.#takeRefusals(MOST_REFUSALS).filter(({ key }) => !this.#quarantine.has(key))
      if (batch.length === 0 && refusals.length === 0) break
      const answer = await this.#decide(batch, refusals)
      // PERF: a caller alone has nobody to share the next batch with, and is answered in 0.7 of the time with a store in memory.
      if (batch.length === 1 && this.#line.length === 0) {
        answer()
        continue
      }
      const couldSend = this.#store.isInProcess !== true && this.#line.length > 0
      await this.#turnaround.answer(answer, this.#pace.batchMs, couldSend)
    }
    this.#running = false
    // Some may wait for a test of their keys.
    if (this.#line.length === 0) this.#timer.rest()
  }

  #refuseAll(error: StoreError): void {
    for (const pending of this.#line.drain()) rejectPending(pending, error)
    this.#line.answered()
  }

  /** @returns what answers the hits, where the store has decided them. */
  async #decide(batch: readonly Pending[], refusals: readonly Refusal[]): Promise<() => void> {
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
      this.#pace.answered(sentAt)
      publishBatch(this.#store, asked, sentAt, null)
      return () =>
        batch.forEach((pending, i) => {
          if (pending.answered) return
          pending.answered = true
          pending.resolve({ verdict: verdicts[i] as Verdict, sentAt })
        })
    } catch (error) {
      for (const pending of batch) rejectPending(pending, error)
      const reason = storeErrorOf(signal.aborted ? await reasonOf(decided, error) : error)
      const failure = reason.code === 'ERR_STORE_TIMEOUT' && this.#isFlooded ? overload() : reason
      this.breaker.failed(failure, sentAt)
      publishBatch(this.#store, asked, sentAt, failure)
      if (signal.aborted && this.breaker.refusal === null) this.#quarantine.suspect(keysOf(batch, refusals))
      return () => {}
    } finally {
      clearTimeout(timer)
      this.#inFlight = []
      this.#line.answered()
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
    for (const pending of [...this.#inFlight, ...this.#line]) {
      if (pending.extended) continue
      pending.extended = true
      pending.deadline += lost
    }
  }

  get #waiting(): number {
    return this.#inFlight.length + this.#line.length
  }

  /**
   * Whether clients alone may be why the store is late: more wait than a batch takes, or did until just now, or others
   * have its connections.
   */
  get #isFlooded(): boolean {
    if (this.#waiting >= MOST_HITS || this.#store.isCrowded === true) return true
    return performance.now() - this.#floodedAt < FLOOD_MS
  }

  /** Why a hit has no answer whose caller waits since then. */
  #late(askedAt: number): StoreError {
    return this.#isFlooded ? overload() : this.#pace.late(askedAt)
  }

  #abort(): void {
    this.#giveUp.abort(timeout())
  }

  #expire(lost: number): void {
    const now = performance.now()
    if (lost > 0) this.#extend(lost)
    let next = Number.POSITIVE_INFINITY
    const expire = (pending: Pending): void => {
      if (pending.answered) return
      if (pending.deadline > now) next = Math.min(next, pending.deadline)
      else rejectPending(pending, this.#late(pending.askedAt))
    }
    this.#inFlight.forEach(expire)
    if (this.#inFlight.length > 0 && this.#inFlight.every(({ answered }) => answered)) this.#abort()
    for (const pending of this.#line) expire(pending)
    this.#line.dropAnswered()
    this.#line.answered(lost)
    if (next < Number.POSITIVE_INFINITY) this.#timer.watch(next)
  }
}

function keysOf(batch: readonly Pending[], refusals: readonly Refusal[]): string[] {
  const hits = batch.flatMap(({ hit }) => hit.charges)
  return [...hits, ...refusals].map(({ key }) => key)
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
