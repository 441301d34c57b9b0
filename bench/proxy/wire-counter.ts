/** What went over the wire from clients to a server. */
export interface WireCounts {
  /** Commands of the MySQL protocol: `COM_QUERY`, `COM_STMT_EXECUTE` and the like. */
  readonly commands: number
  /** Times a client sent something after the server had spoken: how often somebody waited for an answer. */
  readonly roundTrips: number
}

const HEADER_BYTES = 4

/** Reads one connection along. */
export class WireCounter {
  commands = 0
  roundTrips = 0
  /** Bytes of the current packet that are still to come. */
  #left = 0
  /** The bytes of a header so far: three of length, lowest first, and the sequence number. */
  #header: number[] = []
  #serverSpoke = true

  /** Something comes from the client. */
  fromClient(chunk: Uint8Array): void {
    if (this.#serverSpoke) this.roundTrips += 1
    this.#serverSpoke = false
    for (let i = 0; i < chunk.length; ) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, chunk.length - i)
        this.#left -= taken
        i += taken
        continue
      }
      this.#header.push(chunk[i] as number)
      i += 1
      if (this.#header.length === HEADER_BYTES) this.#endHeader()
    }
  }

  /** Something comes from the server. */
  fromServer(): void {
    this.#serverSpoke = true
  }

  #endHeader(): void {
    const [low = 0, middle = 0, high = 0, sequence] = this.#header
    this.#left = low | (middle << 8) | (high << 16)
    // A command begins a conversation; what answers the server's greeting goes on with its numbers.
    if (sequence === 0) this.commands += 1
    this.#header = []
  }
}
