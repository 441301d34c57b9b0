import { LRUCache } from 'lru-cache'
import type { Charge, Hit, Reading, Refund } from '../stores/store.js'
import type { Batcher } from './batcher.js'
import { Lease, lifeOf } from './lease.js'
import type { Answer } from './pending.js'

/** A lease that was asked for and has not arrived. */
interface Request {
  readonly key: string
  /** Units that are spoken for, by the hit that asked and by those that wait for it. */
  reserved: number
  /** Whether the key was reset, blocked or penalised meanwhile. */
  isVoid: boolean
  /** Whether it was reset. What is granted then may be gone already, and nothing else may be taken for it. */
  isGone: boolean
  readonly deadline: number
  /** Resolves with the time by which it was answered later than its deadline, because this process stood still. */
  readonly settled: Promise<number>
}

/** Asks the store about a hit. */
type Ask = (hit: Hit) => Promise<Answer>

/** The most leases one limiter holds at a time. */
const MOST_LEASES = 10_000

/**
 * Takes several units of a key from the store at a time and admits hits from them in memory.
 *
 * The store counts all units of a lease from its grant until a window after the lease's end, and none is used outside
 * of the lease. So whatever instant they are used at, no window holds more than its limit; others may be refused
 * although not all is used. What is left at the end is given back.
 */
export class LeaseBook {
  readonly #units: number
  readonly #batcher: Batcher
  readonly #giveBack: (refund: Refund) => void
  readonly #requests = new Map<string, Request>()
  readonly #inFlight = new Set<Request>()
  /** Hits that a lease was on its way for. Those it had nothing for ask together, and not for another lease in turn. */
  readonly #waited = new WeakSet<Hit>()
  /** Whatever leaves this map with units left gives them back. */
  readonly #leases = new LRUCache<string, Lease>({
    max: MOST_LEASES,
    dispose: (lease) => {
      if (lease.left > 0) this.#giveBack(lease.refund)
    },
  })
  #timer: NodeJS.Timeout | null = null

  /**
   * @param units - how many units a lease has at the most
   * @param giveBack - takes what was not used; must not fail
   */
  constructor(units: number, batcher: Batcher, giveBack: (refund: Refund) => void) {
    this.#units = units
    this.#batcher = batcher
    this.#giveBack = giveBack
  }

  /**
   * What a hit must wait for before it is submitted, or null when it may be at once: for a lease that is on its way and
   * has units for it, else as the batcher has it. That is no longer than the hit has time, since who asked has less.
   */
  turn(hit: Hit, deadline: number, maxPending: number): Promise<number> | null {
    const { cost } = hit
    const charge = this.#leasable(hit)
    if (charge !== null) {
      const lease = this.#leases.peek(charge.key)
      if (lease !== undefined && lease.left >= cost && lease.isLive(performance.now())) return null
      const request = this.#requests.get(charge.key)
      const hasRoom = request !== undefined && request.reserved + cost <= this.#units
      if (hasRoom && request.deadline <= deadline && !this.#waited.has(hit)) {
        request.reserved += cost
        this.#waited.add(hit)
        return request.settled
      }
    }
    return this.#batcher.turn(hit, deadline, maxPending)
  }

  /** Answers a hit from memory or by the store, as the batcher does. */
  async submit(hit: Hit, deadline: number, maxPending: number, askedAt = performance.now()): Promise<Answer> {
    const charge = this.#leasable(hit)
    const ask: Ask = (asked) => this.#batcher.submit(asked, deadline, maxPending, askedAt)
    if (charge === null) return ask(hit)
    return (
      this.#take(charge.key, hit.cost, performance.now()) ??
      (this.#waited.has(hit) ? ask(hit) : this.#request(charge, hit, deadline, ask))
    )
  }

  /** The one charge of a hit that leases are for. */
  #leasable({ charges, cost, force }: Hit): Charge | null {
    const [charge] = charges
    return charge !== undefined && charges.length === 1 && force !== true && cost <= this.#units
      ? charge
      : null
  }

  /**
   * Holds nothing of a key any more, also of what is on its way.
   *
   * @param isGone - whether the store has forgotten the key, so that there is nothing to give back
   */
  end(key: string, isGone: boolean): void {
    for (const request of this.#inFlight) {
      if (request.key !== key) continue
      request.isVoid = true
      request.isGone ||= isGone
    }
    const lease = this.#leases.get(key)
    if (lease === undefined) return
    if (isGone) lease.left = 0
    this.#leases.delete(key)
  }

  /**
   * How a peek that begins now shall be told. A lease that came or ended meanwhile is let be: then what was read says
   * more than is used, not less.
   */
  peeking(key: string): (reading: Reading) => Reading {
    const lease = this.#leases.peek(key)
    return (reading) =>
      lease !== undefined && this.#leases.peek(key) === lease && lease.isLive(performance.now())
        ? lease.seen(reading)
        : reading
  }

  #take(key: string, cost: number, now: number): Answer | null {
    const lease = this.#leases.get(key)
    if (lease === undefined) return null
    if (!lease.isLive(now)) {
      this.#leases.delete(key)
      return null
    }
    if (lease.left < cost) return null
    lease.left -= cost
    if (lease.left === 0) this.#leases.delete(key)
    return lease.answer(now)
  }

  async #request(charge: Charge, hit: Hit, deadline: number, ask: Ask): Promise<Answer> {
    const { key, policy } = charge
    let resolve = (_: number): void => {}
    const settled = new Promise<number>((settle) => {
      resolve = settle
    })
    const request: Request = { key, reserved: hit.cost, isVoid: false, isGone: false, deadline, settled }
    this.#requests.set(key, request)
    this.#inFlight.add(request)
    // As many as hits of this cost can use.
    const units = this.#units - (this.#units % hit.cost)
    const leasing = { ...hit, lease: { units, micros: lifeOf(policy) } }
    let isDenied = false
    try {
      const answer = await ask(leasing)
      const { allowed, granted = hit.cost } = answer.verdict
      isDenied = !allowed
      return granted > hit.cost ? this.#enter(new Lease(charge, answer, granted - hit.cost), request) : answer
    } finally {
      this.#inFlight.delete(request)
      if (this.#requests.get(key) === request) this.#requests.delete(key)
      const lost = Math.max(0, performance.now() - deadline)
      // Those who waited are denied too, once who asked has remembered his denial.
      if (isDenied) setImmediate(resolve, lost)
      else resolve(lost)
    }
  }

  /** Writes down what was granted beyond the hit, and answers the hit. */
  #enter(lease: Lease, { key, isVoid, isGone }: Request): Answer {
    const now = performance.now()
    if (isVoid || !lease.isLive(now)) {
      if (!isGone) this.#giveBack(lease.refund)
      return lease.answer(now)
    }
    const other = this.#leases.peek(key)
    // The later reading of a batch counts the earlier leases too.
    const isJoined = other?.isStoredWith(lease) === true
    if (isJoined) lease.left += other.left
    this.#leases.set(key, lease, { noDisposeOnSet: isJoined })
    this.#watch(lease.until)
    return lease.answer(now)
  }

  /** One timer for all leases. It keeps no process alive: what a process that ends holds stays counted. */
  #watch(until: number): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, Math.ceil(until - performance.now())))
    this.#timer.unref()
  }

  #expire(): void {
    this.#timer = null
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    for (const [key, lease] of [...this.#leases.entries()]) {
      if (lease.isLive(now)) next = Math.min(next, lease.until)
      else this.#leases.delete(key)
    }
    if (next < Number.POSITIVE_INFINITY) this.#watch(next)
  }
}
