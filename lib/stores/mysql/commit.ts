import type { Connection, Result } from './connection.js'
import type { Session } from './session.js'
import { COMMIT } from './statements.js'

/** Tells the runner that COMMIT is about to be sent: from here on a lost connection leaves the outcome unknown. */
export type OnCommit = () => void

/**
 * Sends a unit's last statements and COMMIT, in one packet where that is safe, and gives the statements' results.
 *
 * On Galera a COMMIT in the same packet as the writes can answer OK although another node rolled them back, so there it
 * travels alone. Where statements go one by one, only the COMMIT itself leaves the outcome in doubt.
 */
export async function commit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  statements: readonly string[],
): Promise<Result[]> {
  if (session.commitTravelsAlone || !connection.multipleStatements) {
    const results = await connection.run(statements)
    onCommit()
    await connection.run([COMMIT])
    return results
  }
  onCommit()
  const results = await connection.run([...statements, COMMIT])
  return results.slice(0, statements.length)
}
