import type { Connection } from './connection.js'
import {
  BEGIN,
  READ_COMMITTED_ONCE,
  REPEATABLE_READ_ONCE,
  SERVER_FACTS,
  SESSION_SETTINGS,
} from './statements.js'

/** What was learned of the server at the other end of a connection that decides how a unit is sent to it. */
export class Session {
  /** Whether the sessions are ours: at READ COMMITTED and without autocommit since they were opened. */
  readonly own: boolean
  /**
   * Galera. A node rolls a transaction back when another node's write comes first, and tells so only in answer to a
   * whole packet: what follows in the same packet runs outside of that transaction. COMMIT answers OK then, and an
   * event stays without its head (measured: up to 1,064 of 1,000 admitted, in 6 of 25 runs; each statement in a packet
   * of its own: none in 60).
   */
  readonly statementsTravelAlone: boolean
  /**
   * What tells the server from others, so that a thread of it can be named on another connection. Null where the threads
   * that the driver knows are not the server's: behind a proxy with threads of its own.
   */
  readonly server: string | null
  /** How a transaction begins. */
  begin: readonly string[]

  private constructor(own: boolean, statementsTravelAlone: boolean, server: string | null) {
    this.own = own
    this.begin = own ? [] : [READ_COMMITTED_ONCE, BEGIN]
    this.statementsTravelAlone = statementsTravelAlone
    this.server = server
  }

  /**
   * Asks the server, once a connection: the next one may lead to another node. Sessions of ours get their settings
   * first; one that keeps others must not be used.
   *
   * @param own - whether the sessions are ours
   */
  static async of(connection: Connection, own: boolean): Promise<Session> {
    const results = await connection.run([...(own ? SESSION_SETTINGS : []), SERVER_FACTS])
    const facts = new Map(results.at(-1)?.rows.map(([name, value]) => [String(name), String(value)]))
    const galera = facts.get('wsrep_on')?.toUpperCase() === 'ON'
    const isDirect = facts.get('pseudo_thread_id') === String(connection.threadId)
    const names = ['hostname', 'port', 'server_uuid', 'server_uid'].map((name) => facts.get(name))
    return new Session(own, galera, isDirect ? names.join() : null)
  }

  /**
   * For a server with a statement based binary log, which refuses every write at READ COMMITTED (error 1665). The
   * unit stays exact, since its first read, which fixes the snapshot, follows the lock. What is lost is that
   * unrelated keys never wait: gap locks can deadlock, and deadlocks are retried.
   */
  useRepeatableRead(): void {
    this.begin = [REPEATABLE_READ_ONCE, BEGIN]
  }
}
