import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../servers/free-port.js'
import { refuseStatement } from './refuse-statement.js'

/** A TCP proxy on 127.0.0.1, which does to connections what networks do. */
export interface TcpProxy {
  readonly port: number
  /** Open connections break, new ones are refused. */
  cut(): Promise<void>
  /** Nothing comes through any more, and nobody is told. What was sent arrives when the network heals. */
  silence(): void
  /** Open connections break; new ones are taken, and nothing comes through them. */
  blackHole(): void
  /**
   * Nothing comes through the connections that there are, for ever, not even that one end has closed: as when a router
   * has forgotten them. The same happens to new ones until the network heals.
   */
  forget(): void
  /** So many bytes at a time, with so many milliseconds between, in both directions. */
  slow(bytes: number, millis: number): void
  /** All is well again. */
  heal(): Promise<void>
  /**
   * Breaks the next connection on which the client commits events: before the server has its COMMIT, or after the
   * server has answered, so that only the answer is lost. Resolves when that has happened.
   */
  breakAtCommit(when: 'before' | 'after'): Promise<void>
  /** Does something when the client has next committed events, right before the server gets it. Resolves when done. */
  uponCommit(action: () => void): Promise<void>
  /** Makes the server refuse so many statements that begin so, with an error. Resolves when that has happened. */
  refuse(beginning: string, errno: number, times: number): Promise<void>
  /** How many answers of the server had this text in them, since the first call with it. */
  heard(text: string): number
  /** Breaks all connections, and takes no more. */
  stop(): Promise<void>
}

interface Pace {
  readonly bytes: number
  readonly millis: number
}

interface Break {
  readonly when: 'before' | 'after'
  readonly happened: () => void
}

interface Refusal {
  readonly beginning: string
  readonly errno: number
  times: number
  readonly happened: () => void
}

/** One connection through the proxy: both ends of it. */
interface Pair {
  readonly ends: readonly [Socket, Socket]
  /** What the client has sent since its last transaction ended. */
  sent: string
  /** The server's next answer is lost, and the connection with it. */
  doomed: (() => void) | null
  forgotten: boolean
}

/** Starts a proxy in front of a server's port. */
export async function startProxy(target: number): Promise<TcpProxy> {
  const port = await freePort()
  const pairs = new Set<Pair>()
  const heard = new Map<string, number>()
  let silent = false
  let forgetful = false
  let pace: Pace | null = null
  let awaited: Break | null = null
  let refusal: Refusal | null = null
  let occasion: (() => void) | null = null

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    const pair: Pair = { ends: [client, upstream], sent: '', doomed: null, forgotten: forgetful }
    pairs.add(pair)
    const close = (): void => {
      if (pair.forgotten) return
      for (const end of pair.ends) end.destroy()
      pairs.delete(pair)
    }
    for (const end of pair.ends) {
      end.setNoDelay(true)
      end.on('error', close)
      end.on('close', close)
      if (silent || forgetful) end.pause()
    }
    forward(client, upstream, pair, (bytes) => {
      const commits = commitsEvents(pair, bytes)
      if (awaited !== null && commits) {
        const { when, happened } = awaited
        awaited = null
        if (when === 'before') {
          close()
          happened()
          return null
        }
        pair.doomed = happened
      }
      if (occasion !== null && commits) {
        const act = occasion
        occasion = null
        act()
      }
      return refused(bytes)
    })
    forward(upstream, client, pair, (bytes) => {
      for (const [text, times] of heard) if (bytes.includes(text)) heard.set(text, times + 1)
      if (pair.doomed === null) return bytes
      close()
      pair.doomed()
      return null
    })
  })

  function refused(bytes: Buffer): Buffer {
    if (refusal === null) return bytes
    const { beginning, errno, happened } = refusal
    const changed = refuseStatement(bytes, beginning, errno)
    if (changed === null) return bytes
    refusal.times -= 1
    if (refusal.times === 0) {
      refusal = null
      happened()
    }
    return changed
  }

  function forward(from: Socket, to: Socket, pair: Pair, pass: (bytes: Buffer) => Buffer | null): void {
    from.on('data', async (received: Buffer) => {
      const bytes = pass(received)
      if (bytes === null) return
      if (pace === null) {
        to.write(bytes)
        return
      }
      from.pause()
      for (let at = 0; at < bytes.length && !to.destroyed; ) {
        const { bytes: most, millis }: Pace = pace ?? { bytes: bytes.length, millis: 0 }
        to.write(bytes.subarray(at, at + most))
        at += most
        await new Promise((resolve) => setTimeout(resolve, millis))
      }
      if (!silent && !pair.forgotten) from.resume()
    })
  }

  const listen = (): Promise<void> => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  const pauseAll = (): void => {
    for (const { ends } of pairs) for (const end of ends) end.pause()
  }
  const breakAll = (): void => {
    for (const { ends } of pairs) for (const end of ends) end.destroy()
    pairs.clear()
  }
  const cut = async (): Promise<void> => {
    breakAll()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  await listen()
  return {
    port,
    cut,
    stop: cut,
    silence() {
      silent = true
      pauseAll()
    },
    blackHole() {
      silent = true
      breakAll()
    },
    forget() {
      forgetful = true
      for (const pair of pairs) pair.forgotten = true
      pauseAll()
    },
    slow(bytes, millis) {
      pace = { bytes, millis }
    },
    async heal() {
      silent = false
      forgetful = false
      pace = null
      for (const { ends, forgotten } of pairs) if (!forgotten) for (const end of ends) end.resume()
      if (!server.listening) await listen()
    },
    breakAtCommit: (when) =>
      new Promise((happened) => {
        awaited = { when, happened }
      }),
    uponCommit: (action) =>
      new Promise((resolve) => {
        occasion = () => {
          action()
          resolve()
        }
      }),
    refuse: (beginning, errno, times) =>
      new Promise((happened) => {
        refusal = { beginning, errno, times, happened }
      }),
    heard(text) {
      const times = heard.get(text) ?? 0
      heard.set(text, times)
      return times
    },
  }
}

/**
 * Whether these bytes of a client commit events. Not every COMMIT does: sweeps have theirs, and a new session is set to
 * READ COMMITTED.
 */
function commitsEvents(pair: Pair, bytes: Buffer): boolean {
  const sent = pair.sent + bytes.toString('latin1')
  const isEnd = /(COMMIT|ROLLBACK)$/.test(sent)
  pair.sent = isEnd ? '' : sent
  return sent.endsWith('COMMIT') && sent.includes('INSERT INTO rate_events')
}
