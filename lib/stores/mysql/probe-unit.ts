import { randomBytes } from 'node:crypto'
import { commit, type OnCommit } from './commit.js'
import type { Connection } from './connection.js'
import { deleteAllEvents, deleteKeys } from './removal-statements.js'
import type { Session } from './session.js'
import { bytesLiteral, createKeys, ROLLBACK, sortedLiterals } from './statements.js'

/** No stored form of a key begins with it: names have no control characters. */
const FIRST_BYTE = Buffer.of(0)

/**
 * Does what a decision does, down to COMMIT, on a key of its own, and takes it away again in the same transaction. A
 * probe that only reads, or that rolls back, passes on servers that refuse a decision: read-only ones (1290, 1836),
 * and nodes of a cluster without a majority, which block at COMMIT. The key is another one each time, so that no probe
 * waits for an earlier one that hangs.
 */
export async function probeUnit(connection: Connection, session: Session, onCommit: OnCommit): Promise<void> {
  const key = [bytesLiteral(Buffer.concat([FIRST_BYTE, randomBytes(16)]))]
  await commit(connection, onCommit, [
    ...session.begin,
    createKeys(key),
    `INSERT INTO rate_events (rkey, ts, hits, total) VALUES (${key}, 1, 1, 1)`,
    deleteAllEvents(key),
    deleteKeys(key),
  ])
}

/** Takes the locks of some keys, and gives them back. */
export async function probeKeysUnit(
  connection: Connection,
  session: Session,
  keys: readonly string[],
): Promise<void> {
  await connection.run([...session.begin, createKeys(sortedLiterals(keys)), ROLLBACK])
}
