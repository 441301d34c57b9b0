import { STALL_MS } from '../stores/before-abort.js'

/** One timer for the earliest of many deadlines, not one for each. Deadlines are on the monotonic clock, in milliseconds. */
export class DeadlineTimer {
  readonly #onDue: (lost: number) => void
  #timer: NodeJS.Timeout | null = null
  #dueAt = 0

  /**
   * @param onDue - called when the earliest deadline has come, with the time in milliseconds that this process stood
   *   still over it: 0 as a rule. Then another deadline is watched only when it is given.
   */
  constructor(onDue: (lost: number) => void) {
    this.#onDue = onDue
  }

  watch(deadline: number): void {
    if (this.#timer !== null) {
      if (deadline >= this.#dueAt) {
        this.#timer.ref()
        return
      }
      clearTimeout(this.#timer)
    }
    this.#dueAt = deadline
    const delay = Math.max(0, Math.ceil(deadline - performance.now()))
    this.#timer = setTimeout(() => this.#run(), delay)
  }

  /**
   * There is no deadline to watch at the moment. The timer stays, for the next one is rarely far, but keeps no process
   * alive.
   */
  rest(): void {
    this.#timer?.unref()
  }

  #run(): void {
    this.#timer = null
    const lateness = performance.now() - this.#dueAt
    this.#onDue(lateness > STALL_MS ? lateness : 0)
  }
}
