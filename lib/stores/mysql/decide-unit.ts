import {
  type Account,
  type Demand,
  demandsOf,
  demandsOfPeek,
  EMPTY_HEAD,
  type Settlement,
  settle,
  settlePeek,
  type WindowStart,
} from '../ledger.js'
import type { Batch, Charge, Reading, Verdict } from '../store.js'
import { type Connection, integer, type Result, type Rows } from './connection.js'
import type { Session } from './session.js'
import {
  CLOCK,
  COMMIT,
  lockKeys,
  lookupRetry,
  ROLLBACK,
  readAccounts,
  sortedLiterals,
  writeStatements,
} from './statements.js'

/** Tells the caller that COMMIT is about to be sent: from here on a lost connection leaves the outcome unknown. */
export type OnCommit = () => void

/**
 * Decides one batch in one transaction: one packet locks, reads the clock and counts; another writes and commits.
 * Leaves no transaction open when it returns; when it rejects, the caller rolls back.
 */
export async function decideUnit(
  connection: Connection,
  session: Session,
  batch: Batch,
  onCommit: OnCommit,
): Promise<Verdict[]> {
  const demands = demandsOf(batch)
  const opening = [...session.begin, lockKeys(sortedLiterals(demands.keys())), readAccounts(demands.values())]
  const { rows } = (await connection.run(opening)).at(-1) as Result

  const settlement = settle(batch, demands, accountsOf(rows, demands))
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

  // Nothing admitted: no commit, and so no disk flush. On Galera a COMMIT in the same packet as the writes can
  // answer OK although another node rolled them back, so there it travels alone.
  const ending = writes.length > 0 ? COMMIT : ROLLBACK
  let results: Result[]
  if (ending === COMMIT && session.commitTravelsAlone) {
    results = await connection.run(statements)
    onCommit()
    await connection.run([COMMIT])
  } else {
    if (ending === COMMIT) onCommit()
    results = await connection.run([...statements, ending])
  }
  lookups.forEach(({ resolve }, i) => {
    const row = results[lookupsFrom + i]?.rows[0]
    if (row !== undefined) resolve(integer(row[0]))
  })
}

/** Reads the state of the charges in one transaction that writes nothing and locks nothing. */
export async function peekUnit(
  connection: Connection,
  session: Session,
  charges: readonly Charge[],
): Promise<Reading[]> {
  const demands = demandsOfPeek(charges)
  const opening = [...session.begin, CLOCK, readAccounts(demands.values())]
  const [clock, read] = (await connection.run(opening)).slice(-2)
  const accounts = accountsOf(read?.rows ?? [], demands)
  const now = integer(clock?.rows[0]?.[0])
  for (const [key, { policies }] of demands) {
    if (accounts.has(key)) continue
    const windows = new Map(policies.map((policy) => [policy.windowMicros, { first: 0, base: 0 }]))
    accounts.set(key, { head: EMPTY_HEAD, now, windows, pruneTo: 0 })
  }
  const { readings, lookups } = settlePeek(charges, accounts)
  await write(connection, session, { verdicts: [], writes: [], lookups }, () => {})
  return readings
}

/** The rows of `readAccounts` by key; a key asked for under two windows comes in two rows. */
function accountsOf(rows: Rows, demands: ReadonlyMap<string, Demand>): Map<string, Account> {
  const accounts = new Map<string, Account & { windows: Map<number, WindowStart>; pruneTo: number }>()
  for (const [rkey, now, total, last, span, pruned, window, first, base, pruneTo] of rows) {
    const key = String(rkey)
    if (!demands.has(key)) throw new Error('the database answered for a key that was not asked')
    const start = { first: integer(first), base: integer(base) }
    const until = pruneTo === null ? 0 : integer(pruneTo)
    const seen = accounts.get(key)
    if (seen !== undefined) {
      seen.windows.set(integer(window), start)
      seen.pruneTo = Math.min(seen.pruneTo, until)
      continue
    }
    const head = {
      total: integer(total),
      last: integer(last),
      span: integer(span),
      pruned: integer(pruned),
      memoWindow: 0,
      memoFirst: start.first,
      memoBase: start.base,
    }
    accounts.set(key, {
      head,
      now: integer(now),
      windows: new Map([[integer(window), start]]),
      pruneTo: until,
    })
  }
  return accounts
}
