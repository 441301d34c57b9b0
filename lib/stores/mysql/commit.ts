import type { Connection, Result } from './connection.js'
import { COMMIT } from './statements.js'

/**
 * Tells the runner that COMMIT is about to be sent: from here on a lost connection leaves the outcome unknown. With false,
 * that the server has answered without coming to it.
 */
export type OnCommit = (isSent?: boolean) => void

/**
 * Sends a unit's last statements and COMMIT, in one packet where that is safe, and gives the statements' results.
 * Where statements go one by one, only the COMMIT itself leaves the outcome in doubt.
 */
export async function commit(
  connection: Connection,
  onCommit: OnCommit,
  statements: readonly string[],
): Promise<Result[]> {
  if (!connection.multipleStatements) {
    const results = await connection.run(statements)
    onCommit()
    await connection.run([COMMIT])
    return results
  }
  onCommit()
  const results = await connection.run([...statements, COMMIT])
  return results.slice(0, statements.length)
}
