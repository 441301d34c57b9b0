import { type Account, EMPTY_HEAD, type Head, instantOf, pruneIsDue, type WindowStart } from '../account.js'
import type { Demand } from '../demand.js'
import { type Connection, integer, type Result, type Rows } from './connection.js'
import { CLOCK, readHeads, readWindows, sortedLiterals, type WindowRead } from './statements.js'
import type { WindowHints } from './window-hints.js'

interface OpenAccount extends Account {
  now: number
  readonly windows: Map<number, WindowStart>
  pruneTo: number
}

/**
 * Sends `opening` and reads the accounts of all demands behind it: in the same packet, and in one more only when a
 * window's first event had left without a hint of it.
 */
export async function readAccounts(
  connection: Connection,
  opening: readonly string[],
  demands: ReadonlyMap<string, Demand>,
  hints: WindowHints,
): Promise<Map<string, Account>> {
  const all = Array.from(demands.values(), loggedWindows)
  // A key's windows are read together, so that all of them are seen at one instant.
  const expected = all.filter((reads) =>
    reads.some((read) => hints.mayHaveMoved(read.key, read.windowMicros)),
  )
  const statements = [readHeads(sortedLiterals(demands.keys()))]
  if (expected.length > 0) statements.push(readWindows(expected.flat()))
  const results = await connection.run([...opening, ...statements])
  const [heads, windows] = results.slice(opening.length) as [Result, Result | undefined]

  const accounts = openAccounts(heads.rows)
  if (accounts.size < demands.size) await addUnused(connection, accounts, demands)
  if (windows !== undefined) applyWindows(windows.rows, accounts)
  const missing = all.filter((reads) => !reads.every((read) => isKnown(read, accounts)))
  if (missing.length > 0) {
    const [found] = (await connection.run([readWindows(missing.flat())])) as [Result]
    applyWindows(found.rows, accounts)
  }
  for (const read of all.flat()) remember(read, accounts, hints)
  return accounts
}

interface LoggedWindow extends WindowRead {
  readonly sliding: boolean
}

/** The windows of one key whose hits are in the event log. A fixed window itself is in the head. */
const loggedWindows = ({ key, policies, span }: Demand): LoggedWindow[] =>
  policies
    .map(({ algorithm, windowMicros, audit }) => ({
      key,
      windowMicros,
      span,
      sliding: algorithm === 'sliding-window',
      logged: algorithm === 'sliding-window' || audit,
    }))
    .filter(({ logged }) => logged)

function remember(
  { key, windowMicros, span, sliding }: LoggedWindow,
  accounts: Map<string, OpenAccount>,
  hints: WindowHints,
): void {
  const { head, now, windows, pruneTo } = accounts.get(key) as OpenAccount
  const at = instantOf(head, now)
  hints.observe(now)
  // What is due to be pruned is found out together with the window: ask for it next time.
  const pruneNext = pruneTo === 0 && pruneIsDue(head, at, Math.max(head.span, span))
  if (pruneNext) hints.remember(key, windowMicros, at)
  else if (sliding) hints.remember(key, windowMicros, (windows.get(windowMicros)?.first || at) + windowMicros)
  else hints.forget(key, windowMicros)
}

function openAccounts(rows: Rows): Map<string, OpenAccount> {
  const accounts = new Map<string, OpenAccount>()
  for (const [rkey, now, ...columns] of rows) {
    const [total, last, span, pruned, memoWindow, memoFirst, memoBase, blocked] = columns.map(integer)
    const head = { total, last, span, pruned, memoWindow, memoFirst, memoBase, blocked } as Head
    accounts.set(String(rkey), { head, now: integer(now), windows: new Map(), pruneTo: 0 })
  }
  return accounts
}

/** Only a peek comes to keys that have no row, to read the clock beside; a decision has made them all. */
async function addUnused(
  connection: Connection,
  accounts: Map<string, OpenAccount>,
  demands: ReadonlyMap<string, Demand>,
): Promise<void> {
  const [clock] = (await connection.run([CLOCK])) as [Result]
  const now = integer(clock.rows[0]?.[0])
  for (const key of demands.keys()) {
    if (!accounts.has(key)) accounts.set(key, { head: EMPTY_HEAD, now, windows: new Map(), pruneTo: 0 })
  }
}

/** The rows of `readWindows`. They were read a little later than the heads, and their instant becomes the key's. */
function applyWindows(rows: Rows, accounts: Map<string, OpenAccount>): void {
  for (const [rkey, windowMicros, now, first, base, pruneTo] of rows) {
    const account = accounts.get(String(rkey))
    if (account === undefined) throw new Error('the database answered for a key that was not asked')
    account.now = integer(now)
    account.windows.set(integer(windowMicros), { first: integer(first), base: integer(base) })
    account.pruneTo = pruneTo === null ? 0 : integer(pruneTo)
  }
}

/** Whether a window's first event is read, or told by the head: none is in it, or the remembered one still is. */
function isKnown({ key, windowMicros, sliding }: LoggedWindow, accounts: Map<string, OpenAccount>): boolean {
  if (!sliding) return true
  const { head, now, windows } = accounts.get(key) as OpenAccount
  if (windows.has(windowMicros)) return true
  const cutoff = instantOf(head, now) - windowMicros
  if (head.last <= cutoff) windows.set(windowMicros, { first: 0, base: 0 })
  else if (head.memoWindow >= windowMicros && head.memoFirst > cutoff) {
    windows.set(windowMicros, { first: head.memoFirst, base: head.memoBase })
  }
  return windows.has(windowMicros)
}
