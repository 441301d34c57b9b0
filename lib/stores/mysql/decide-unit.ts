import { demandsOf, demandsOfPeek } from '../demand.js'
import { type Settlement, settle, settlePeek } from '../settle.js'
import type { Batch, Charge, Reading, Verdict } from '../store.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import { readAccounts } from './read-accounts.js'
import type { Session } from './session.js'
import { lockKeys, lookupRetry, ROLLBACK, sortedLiterals, writeStatements } from './statements.js'
import type { WindowHints } from './window-hints.js'

/**
 * Decides one batch in one transaction: one packet locks, reads the clock and counts; another writes and commits.
 * Leaves no transaction open when it returns; when it rejects, the caller rolls back.
 */
export async function decideUnit(
  connection: Connection,
  session: Session,
  hints: WindowHints,
  batch: Batch,
  onCommit: OnCommit,
): Promise<Verdict[]> {
  const demands = demandsOf(batch)
  if (demands.size === 0) return settle(batch, demands, new Map()).verdicts
  const opening = [...session.begin, lockKeys(sortedLiterals(demands.keys()))]
  const settlement = settle(batch, demands, await readAccounts(connection, opening, demands, hints))
  await write(connection, session, settlement, onCommit)
  return settlement.verdicts
}

async function write(
  connection: Connection,
  session: Session,
  { writes, lookups }: Settlement,
  onCommit: OnCommit,
): Promise<void> {
  const statements = writeStatements(writes)
  const lookupsFrom = statements.length
  statements.push(...lookups.map(lookupRetry))

  // Nothing to write: no commit, and so no disk flush.
  const results =
    writes.length > 0
      ? await commit(connection, session, onCommit, statements)
      : await connection.run([...statements, ROLLBACK])
  lookups.forEach(({ resolve }, i) => {
    const row = results[lookupsFrom + i]?.rows[0]
    if (row !== undefined) resolve(integer(row[0]))
  })
}

/** Reads the state of the charges in one transaction that writes nothing and locks nothing. */
export async function peekUnit(
  connection: Connection,
  session: Session,
  hints: WindowHints,
  charges: readonly Charge[],
): Promise<Reading[]> {
  const accounts = await readAccounts(connection, session.begin, demandsOfPeek(charges), hints)
  const { readings, lookups } = settlePeek(charges, accounts)
  await write(connection, session, { verdicts: [], writes: [], lookups }, () => {})
  return readings
}
