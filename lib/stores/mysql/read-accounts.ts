import { type Account, EMPTY_HEAD, type Head, instantOf, newestOf, type WindowStart } from '../account.js'
import type { Demand } from '../demand.js'
import { isLogged } from '../is-logged.js'
import { type Connection, integer, type Result, type Rows } from './connection.js'
import { KnownKey } from './known-key.js'
import type { KnownKeys } from './known-keys.js'
import { EVENTS_READ } from './known-log.js'
import {
  CLOCK,
  createKeys,
  type EventLook,
  lockHeads,
  type PruneLook,
  ROLLBACK,
  readEventsAfter,
  readHeads,
  readPruneEnds,
  sortedLiterals,
} from './statements.js'

/** A key under its lock, and what this process remembers of it. */
interface LockedAccount extends Account {
  readonly known: KnownKey
  readonly windows: Map<number, WindowStart>
  pruneTo: number
}

/** How far ahead of the database's clock a guess looks: a lock may be waited for before the log is read. */
const AHEAD_MICROS = 20_000

/**
 * Locks the keys of all demands and reads their accounts: in one packet, and in one more only when a window's first
 * event had left and this process did not expect it, when a key that it did not know is due to be pruned, or when one
 * that it knew is gone.
 *
 * @param begin - how the transaction begins
 * @param opening - what to send first
 */
export async function lockAccounts(
  connection: Connection,
  begin: readonly string[],
  opening: readonly string[],
  demands: ReadonlyMap<string, Demand>,
  knownKeys: KnownKeys,
): Promise<Map<string, LockedAccount>> {
  const expected = expect(demands, knownKeys)
  const { allKnown, looks, prunes } = expected
  const literals = sortedLiterals(demands.keys())
  const locking = allKnown ? [lockHeads(literals)] : [createKeys(literals), readHeads(literals)]
  const statements = [...opening, ...locking, CLOCK]
  if (looks.length > 0) statements.push(readEventsAfter(looks))
  if (prunes.length > 0) statements.push(readPruneEnds(prunes))

  const results = (await connection.run(statements)).slice(opening.length + locking.length - 1)
  const [heads, clock] = results as [Result, Result]
  if (heads.rows.length < demands.size) {
    // Swept or reset by another process. Locking the rest and then creating it would break the order of the locks.
    for (const key of demands.keys()) knownKeys.forget(key)
    return lockAccounts(connection, begin, [ROLLBACK, ...begin], demands, knownKeys)
  }
  const now = integer(clock.rows[0]?.[0])
  knownKeys.clock.observe(now)
  const accounts = new Map<string, LockedAccount>()
  const met: string[] = []
  for (const row of heads.rows) {
    const key = String(row[0])
    const head = headOf(row)
    let known = knownKeys.get(key)
    if (known === undefined) {
      known = knownKeys.add(key, head)
      met.push(key)
    } else known.saw(head)
    accounts.set(key, { head, now, known, windows: new Map(), pruneTo: 0 })
  }
  if (looks.length > 0) learn(looks, (results[2] as Result).rows, accounts)
  if (prunes.length > 0) applyPrunes(prunes, (results.at(-1) as Result).rows, accounts, demands)

  // A process that has more keys than it remembers, or lives for one hit, prunes what it meets, or nobody would.
  const due = met.flatMap((key) => pruneLook(accounts.get(key)?.known, demands.get(key) as Demand, now))
  const missing = findStarts(demands, accounts)
  const late: string[] = []
  if (missing.length > 0) late.push(readEventsAfter(missing))
  if (due.length > 0) late.push(readPruneEnds(due))
  if (late.length > 0) {
    const found = await connection.run(late)
    if (missing.length > 0) learn(missing, (found[0] as Result).rows, accounts)
    if (due.length > 0) applyPrunes(due, (found.at(-1) as Result).rows, accounts, demands)
  }
  return accounts
}

/** Reads the accounts of all demands without a lock, and remembers nothing of them. */
export async function readAccounts(
  connection: Connection,
  begin: readonly string[],
  demands: ReadonlyMap<string, Demand>,
): Promise<Map<string, Account>> {
  const statements = [...begin, readHeads(sortedLiterals(demands.keys())), CLOCK]
  const [heads, clock] = (await connection.run(statements)).slice(begin.length) as [Result, Result]
  const now = integer(clock.rows[0]?.[0])
  const found = new Map(heads.rows.map((row) => [String(row[0]), headOf(row)]))
  const accounts = new Map<string, LockedAccount>()
  for (const key of demands.keys()) {
    const head = found.get(key) ?? EMPTY_HEAD
    accounts.set(key, { head, now, known: new KnownKey(head), windows: new Map(), pruneTo: 0 })
  }
  const missing = findStarts(demands, accounts)
  if (missing.length > 0) {
    const [events] = (await connection.run([readEventsAfter(missing)])) as [Result]
    learn(missing, events.rows, accounts)
  }
  return accounts
}

const headOf = (row: readonly unknown[]): Head => ({
  total: integer(row[1]),
  last: integer(row[2]),
  span: integer(row[3]),
  pruned: integer(row[4]),
  memoWindow: integer(row[5]),
  memoFirst: integer(row[6]),
  memoBase: integer(row[7]),
  blocked: integer(row[8]),
  logVersion: integer(row[9]),
  stamp: integer(row[10]),
})

/** What a batch that is sent now will find and need, as far as this process can tell. */
interface Expectation {
  /** Whether all keys exist. */
  readonly allKnown: boolean
  /** Windows whose first event will have left. */
  readonly looks: readonly EventLook[]
  readonly prunes: readonly PruneLook[]
}

function expect(demands: ReadonlyMap<string, Demand>, knownKeys: KnownKeys): Expectation {
  const looks: EventLook[] = []
  const prunes: PruneLook[] = []
  let allKnown = true
  const now = knownKeys.clock.estimate()
  for (const demand of demands.values()) {
    const { key, policies } = demand
    const known = knownKeys.get(key)
    if (known === undefined) allKnown = false
    if (known === undefined || now === null) continue
    const at = instantOf(known.head, now + AHEAD_MICROS)
    for (const { algorithm, windowMicros } of policies) {
      if (algorithm === 'fixed-window' || known.startOf(windowMicros, at - windowMicros) !== undefined)
        continue
      // The clock will show more than this, so nothing that is still in the window is left out.
      looks.push({ key, windowMicros, after: now - windowMicros })
    }
    prunes.push(...pruneLook(known, demand, now))
  }
  return { allKnown, looks, prunes }
}

/** What to read before a key is pruned; nothing when that is not due. */
function pruneLook(known: KnownKey | undefined, { key, policies, span }: Demand, now: number): PruneLook[] {
  const prune = policies.some(isLogged) ? known?.prunable(now, span) : null
  return prune ? [{ key, ...prune }] : []
}

/** Fills in the windows whose first event is known by now, and tells which are not. That of a fixed window is in the head. */
function findStarts(
  demands: ReadonlyMap<string, Demand>,
  accounts: ReadonlyMap<string, LockedAccount>,
): EventLook[] {
  const missing: EventLook[] = []
  for (const { key, policies } of demands.values()) {
    const { head, now, known, windows } = accounts.get(key) as LockedAccount
    const at = instantOf(head, now)
    for (const { algorithm, windowMicros } of policies) {
      if (algorithm === 'fixed-window') continue
      const after = at - windowMicros
      const start = known.startOf(windowMicros, after)
      if (start === undefined) missing.push({ key, windowMicros, after })
      else windows.set(windowMicros, start)
    }
  }
  return missing
}

interface ReadEvent {
  readonly ts: number
  readonly base: number
}

const lookId = ({ key, windowMicros }: Pick<EventLook, 'key' | 'windowMicros'>): string =>
  `${windowMicros} ${key}`

/** Remembers what looks have found, and fills in the windows of those that asked for all that is in them. */
function learn(looks: readonly EventLook[], rows: Rows, accounts: ReadonlyMap<string, LockedAccount>): void {
  const found = new Map<string, ReadEvent[]>(looks.map((look) => [lookId(look), []]))
  for (const [rkey, windowMicros, ts, base] of rows) {
    const id = lookId({ key: String(rkey), windowMicros: integer(windowMicros) })
    found.get(id)?.push({ ts: integer(ts), base: integer(base) })
  }
  for (const look of looks) {
    const { head, now, known, windows } = accounts.get(look.key) as LockedAccount
    const events = found.get(lookId(look)) ?? []
    // A look that is not full has reached the newest event.
    const upTo = events.length < EVENTS_READ ? newestOf(head) : (events.at(-1) as ReadEvent).ts
    known.sawEvents(look.windowMicros, look.after, upTo, events)
    // Not from what is remembered, which is a few windows of a key, while a hit may ask about more.
    if (look.after !== instantOf(head, now) - look.windowMicros) continue
    const [first] = events
    windows.set(look.windowMicros, { first: first?.ts ?? 0, base: first?.base ?? 0 })
  }
}

/**
 * How far keys are pruned in this unit. Less far where the clock turns out to show less than was thought, or another
 * process has asked for a longer span since.
 */
function applyPrunes(
  looks: readonly PruneLook[],
  rows: Rows,
  accounts: ReadonlyMap<string, LockedAccount>,
  demands: ReadonlyMap<string, Demand>,
): void {
  const ends = new Map(rows.map(([rkey, upTo]) => [String(rkey), integer(upTo)]))
  for (const { key } of looks) {
    const account = accounts.get(key) as LockedAccount
    const { head, now } = account
    const span = Math.max(head.span, demands.get(key)?.span ?? 0)
    const upTo = Math.min(ends.get(key) ?? 0, instantOf(head, now) - span)
    if (upTo > head.pruned) account.pruneTo = upTo
  }
}
