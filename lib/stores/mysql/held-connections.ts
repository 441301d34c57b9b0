/**
 * The connections that units of this store are at work with. A server that has none to spare (a user of shared hosting may
 * have one) refuses the next, but one of these is free soon.
 */
export class HeldConnections {
  #count = 0
  #timesLeft = 0
  #waiting: (() => void)[] = []

  /** How often one was left, to compare with later. */
  get timesLeft(): number {
    return this.#timesLeft
  }

  took(): void {
    this.#count += 1
  }

  /** It was given back to the pool, or destroyed. */
  left(): void {
    this.#count -= 1
    this.#timesLeft += 1
    for (const tell of this.#waiting.splice(0)) tell()
  }

  /** Resolves when one was left since `timesLeft` was that; null when none was and none will be. */
  leftSince(timesLeft: number): Promise<void> | null {
    if (this.#timesLeft > timesLeft) return Promise.resolve()
    if (this.#count === 0) return null
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }
}
