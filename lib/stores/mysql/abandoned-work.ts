import { StoreError } from '../store-error.js'
import { remedyOf } from './classify-error.js'
import type { Connection, Work } from './connection.js'
import type { Session } from './session.js'
import { ROLLBACK } from './statements.js'

/** More than this at a time are left to end by themselves. */
const MOST = 8
/** How much of a statement SHOW PROCESSLIST tells. */
const SHOWN = 100
/** What a server's count of idle seconds may fall short of ours: it is rounded, and begins when a statement has ended. */
const SLACK_SECONDS = 2

/**
 * What connections were at when they were given up or lost. A server does not notice that while it waits for a lock: it
 * keeps those it has until the wait is over, a second on our own sessions, by default 50 seconds on others (measured: a
 * key of such a transaction stays locked for all of that, and 16 to 43 ms after a KILL). Where the network has
 * forgotten a connection, it does not notice at all, and keeps them for as long as a session may be idle.
 *
 * So whoever uses the server next ends it, by its thread. Behind a proxy, or on another node after a failover, a thread of
 * the same number may be somebody else's. It is ended if it is at the very statement that was sent; or if this is the
 * same server, and it has been idle since: so long that no restart, after which threads are numbered anew, lies between.
 */
export class AbandonedWork {
  #works: Work[] = []

  add(work: Work): void {
    if (this.#works.length < MOST) this.#works.push(work)
  }

  /** Ends it all, over another connection. Only an error that leaves that one broken is thrown. */
  async end(connection: Connection, session: Session): Promise<void> {
    if (this.#works.length === 0) return
    const works = this.#works
    this.#works = []
    try {
      // An error is nothing to us: it has ended by itself meanwhile, or a proxy does not know these statements.
      const [threads] = (await tolerantly(connection.run(['SHOW PROCESSLIST']))) ?? []
      for (const row of threads?.rows ?? []) {
        const threadId = Number(row[0])
        const isOurs = works.some(
          (work) => work.threadId === threadId && (isAt(work, row[7]) || isIdleSince(work, session, row)),
        )
        if (isOurs) await tolerantly(connection.run([`KILL ${threadId}`]))
      }
    } catch (error) {
      for (const work of works) this.add(work)
      throw error
    }
  }
}

/** What a promise gives, or undefined where it fails but leaves the connection usable. */
const tolerantly = <T>(promise: Promise<T>): Promise<T | undefined> =>
  promise.catch((error) => {
    if (remedyOf(error) === 'broken' || error instanceof StoreError) throw error
    return undefined
  })

/**
 * Whether a thread's statement, as far as it is told, is one of those that were sent. Not a mere COMMIT or ROLLBACK,
 * which anybody's could be, and which is about to end.
 */
const isAt = ({ sql }: Work, info: unknown): boolean => {
  const text = Buffer.isBuffer(info) ? info.toString() : info
  return typeof text === 'string' && text.length > ROLLBACK.length && sql.includes(text.slice(0, SHOWN))
}

/** Whether a thread of the same number is the same thread, and has been idle since the work was sent to it. */
const isIdleSince = ({ server, sentAt }: Work, session: Session, row: readonly unknown[]): boolean =>
  server !== null &&
  server === session.server &&
  String(row[4]) === 'Sleep' &&
  Number(row[5]) + SLACK_SECONDS >= (performance.now() - sentAt) / 1000
