import { demandsOf, demandsOfPeek } from '../demand.js'
import type { KeptUsage } from '../kept-usage.js'
import { settle, settlePeek } from '../settle.js'
import type { RetryLookup } from '../settling-key.js'
import type { Batch, Charge, Reading, Verdict } from '../store.js'
import { decideAssumed } from './assumed-unit.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer, type Result } from './connection.js'
import type { KnownKeys } from './known-keys.js'
import { lockAccounts, readAccounts } from './read-accounts.js'
import type { Session } from './session.js'
import { lookupRetry, ROLLBACK } from './statements.js'
import { writeStatements } from './write-statements.js'

/**
 * Decides one batch in one transaction: one packet locks, reads the clock and counts; another writes and commits. A
 * batch of keys that are this process's own takes one packet.
 *
 * Leaves no transaction open when it returns; when it rejects, the caller rolls back.
 */
export async function decideUnit(
  connection: Connection,
  session: Session,
  known: KnownKeys,
  batch: Batch,
  onCommit: OnCommit,
  usage: KeptUsage,
): Promise<Verdict[]> {
  const demands = demandsOf(batch)
  if (demands.size === 0) return settle(batch, demands, new Map()).verdicts
  const assumed = await decideAssumed(connection, session, onCommit, batch, demands, known)
  if (assumed.verdicts !== null) return assumed.verdicts

  const opening = assumed.tried ? [ROLLBACK, ...session.begin] : session.begin
  const accounts = await lockAccounts(connection, session.begin, opening, demands, known)
  const { verdicts, writes, lookups } = settle(batch, demands, accounts)
  const statements = [...lookups.map(lookupRetry), ...writeStatements(writes, usage)]
  // Nothing to write: no commit, and so no disk flush.
  const results =
    writes.length > 0
      ? await commit(connection, onCommit, statements)
      : await connection.run([...statements, ROLLBACK])
  resolveLookups(lookups, results)
  for (const write of writes)
    accounts.get(write.key)?.known.wrote(write, demands.get(write.key)?.policies ?? [])
  return verdicts
}

/** Reads the state of the charges in one transaction that writes nothing and locks nothing. */
export async function peekUnit(
  connection: Connection,
  session: Session,
  charges: readonly Charge[],
): Promise<Reading[]> {
  const accounts = await readAccounts(connection, session.begin, demandsOfPeek(charges))
  const { readings, lookups } = settlePeek(charges, accounts)
  resolveLookups(lookups, await connection.run([...lookups.map(lookupRetry), ROLLBACK]))
  return readings
}

/** The results of the lookups are the first ones. */
function resolveLookups(lookups: readonly RetryLookup[], results: readonly Result[]): void {
  lookups.forEach(({ resolve }, i) => {
    const row = results[i]?.rows[0]
    if (row !== undefined) resolve(integer(row[0]))
  })
}
