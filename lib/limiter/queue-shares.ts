import type { Charge, Hit } from '../stores/store.js'

/** A hit in the queue, and its deadline on the monotonic clock, in milliseconds. */
interface Waiting {
  readonly hit: Hit
  readonly deadline: number
}

interface Places {
  count: number
  /** The latest deadline of the hits in them. */
  latest: number
}

/** While many wait, a key has one of so many shares of the places, … */
const MOST_SHARES = 100
/** … and many wait when so many shares of the places are taken. */
const CALM_SHARES = 5

/**
 * Sees to it that no key has all the places of a queue.
 *
 * Whoever hits one key fast enough could else fill the queue, and what then finds no place, another key of his for
 * example, is let through uncounted. So while many wait, a key has a hundredth of the places. Its other hits wait for
 * the next answers outside, where they take nobody's place: mostly one of these answers is a denial, and theirs too.
 *
 * Places are counted only while many wait. The queue of most moments is as short as a batch, and counting would cost
 * every hit.
 */
export class QueueShares {
  #places: Map<string, Places> | null = null
  #answers: { readonly promise: Promise<number>; readonly resolve: (lost: number) => void } | null = null

  /** A hit has joined the queue. */
  add(waiting: Waiting): void {
    if (this.#places !== null) count(this.#places, waiting)
  }

  /** A hit has left it. */
  remove({ charges }: Hit): void {
    if (this.#places === null) return
    for (const { key } of charges) {
      const places = this.#places.get(key)
      if (places === undefined) continue
      places.count -= 1
      if (places.count === 0) this.#places.delete(key)
    }
  }

  /** The queue is empty, so there is nothing to count any more. */
  clear(): void {
    this.#places = null
  }

  /**
   * What a hit with these charges must wait for before it joins the queue, or null when it may at once. It resolves
   * with the time that this process stood still meanwhile, in milliseconds, by which the deadline moves. It resolves
   * in time, because hits of the key wait inside that have no later deadline.
   */
  turn(
    queue: readonly Waiting[],
    charges: readonly Charge[],
    deadline: number,
    maxPending: number,
  ): Promise<number> | null {
    const share = Math.ceil(maxPending / MOST_SHARES)
    if (queue.length < share * CALM_SHARES) return null
    if (this.#places === null) {
      this.#places = new Map()
      for (const waiting of queue) count(this.#places, waiting)
    }
    for (const { key } of charges) {
      const places = this.#places.get(key)
      if (places !== undefined && places.count >= share && places.latest <= deadline)
        return this.#nextAnswers()
    }
    return null
  }

  /** Hits were answered: those outside may ask again. */
  answered(lost = 0): void {
    const answers = this.#answers
    if (answers === null) return
    this.#answers = null
    // When those who were answered have remembered their denials.
    setImmediate(answers.resolve, lost)
  }

  #nextAnswers(): Promise<number> {
    if (this.#answers === null) {
      let resolve = (_: number): void => {}
      const promise = new Promise<number>((settle) => {
        resolve = settle
      })
      this.#answers = { promise, resolve }
    }
    return this.#answers.promise
  }
}

function count(all: Map<string, Places>, { hit, deadline }: Waiting): void {
  for (const { key } of hit.charges) {
    const places = all.get(key)
    if (places === undefined) all.set(key, { count: 1, latest: deadline })
    else {
      places.count += 1
      if (deadline > places.latest) places.latest = deadline
    }
  }
}
