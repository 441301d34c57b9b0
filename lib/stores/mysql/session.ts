import type { Connection } from './connection.js'
import { BEGIN, READ_COMMITTED_ONCE, REPEATABLE_READ_ONCE } from './statements.js'

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
  /** How a transaction begins. */
  begin: readonly string[]

  private constructor(own: boolean, statementsTravelAlone: boolean) {
    this.own = own
    this.begin = own ? [] : [READ_COMMITTED_ONCE, BEGIN]
    this.statementsTravelAlone = statementsTravelAlone
  }

  /**
   * Asks the server, once a connection: the next one may lead to another node.
   *
   * @param own - whether the sessions are ours
   */
  static async of(connection: Connection, own: boolean): Promise<Session> {
    const [result] = await connection.run([`SHOW VARIABLES LIKE 'wsrep_on'`])
    const galera = result?.rows.some(([, value]) => String(value).toUpperCase() === 'ON') === true
    return new Session(own, galera)
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
