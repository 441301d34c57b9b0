import type { Response } from 'express'

/** How long one stream lasts, in milliseconds. Browsers come back by themselves, and are authorised anew. */
const LIFE_MS = 600_000
/** After how long they come back, in milliseconds. */
const RETRY_MS = 2_000
/** What may wait for a viewer who reads too slowly, in bytes; then he has to come back. */
const MOST_WAITING = 1_000_000

/** The streams of server-sent events to those who look at this moment. */
export class Viewers {
  readonly #most: number
  readonly #onChange: (viewers: number) => void
  readonly #streams = new Map<Response, NodeJS.Timeout>()

  /**
   * @param most - the most viewers at a time
   * @param onChange - called when one has come or gone
   */
  constructor(most: number, onChange: (viewers: number) => void) {
    this.#most = most
    this.#onChange = onChange
  }

  get isFull(): boolean {
    return this.#streams.size >= this.#most
  }

  /** Begins a stream. */
  add(res: Response): void {
    // Who has left while `authorize` was thinking has said so already, and would have his place for ever.
    if (res.destroyed) return
    res.status(200)
    res.setHeader('Content-Type', 'text/event-stream')
    // `no-transform` keeps middleware and proxies from compressing it, the other nginx from holding it back.
    res.setHeader('Cache-Control', 'no-store, no-transform')
    res.setHeader('X-Accel-Buffering', 'no')
    res.on('close', () => this.#remove(res))
    const timer = setTimeout(() => res.end(), LIFE_MS)
    timer.unref()
    this.#streams.set(res, timer)
    this.#write(res, `retry: ${RETRY_MS}\n\n`)
    this.#onChange(this.#streams.size)
  }

  /** Sends an event to one viewer, or to all. JSON has no line breaks of its own. */
  send(event: string, data: unknown, to: Iterable<Response> = this.#streams.keys()): void {
    const text = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
    for (const res of to) this.#write(res, text)
  }

  /** Ends all streams. */
  close(): void {
    for (const res of this.#streams.keys()) {
      res.end()
      this.#remove(res)
    }
  }

  #write(res: Response & { flush?: () => void }, text: string): void {
    if (res.writableEnded || res.destroyed) return
    res.write(text)
    // The middleware `compression` holds back what was written until it is told not to.
    res.flush?.()
    if (res.writableLength > MOST_WAITING) res.destroy()
  }

  #remove(res: Response): void {
    const timer = this.#streams.get(res)
    if (timer === undefined) return
    clearTimeout(timer)
    this.#streams.delete(res)
    this.#onChange(this.#streams.size)
  }
}
