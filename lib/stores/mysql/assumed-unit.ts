import { type Account, EMPTY_HEAD, instantOf, type WindowStart } from '../account.js'
import type { Demand } from '../demand.js'
import { windowEndAt, windowStartAt } from '../fixed-window.js'
import { isLogged } from '../is-logged.js'
import { settle } from '../settle.js'
import type { Batch, Verdict } from '../store.js'
import { type Assumption, assumedStatements, isStale } from './assumed-statements.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import { KnownKey } from './known-key.js'
import type { KnownKeys } from './known-keys.js'
import type { Session } from './session.js'

/** Answers null when a batch cannot be decided so, and leaves the transaction to be rolled back if it tried. */
export interface AssumedOutcome {
  readonly verdicts: Verdict[] | null
  /** Whether anything was sent. */
  readonly tried: boolean
}

const NOT_TRIED: AssumedOutcome = { verdicts: null, tried: false }

/**
 * Decides a batch in one round trip, upon heads that this process remembers: the packet writes, and proves that
 * nobody has changed a key since, before it commits. Only for hits that all pass, for keys that nobody else seems to
 * write, where every window's first event is known, and where no lease has a say in the time of the event. Everything
 * else is read first, under the lock.
 *
 * It is exact: the instant of the decision lies between the packet's arrival and its commit, and the state that it was
 * decided upon is proved to be the state at that instant.
 */
export async function decideAssumed(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  batch: Batch,
  demands: ReadonlyMap<string, Demand>,
  known: KnownKeys,
): Promise<AssumedOutcome> {
  // A statement-based binary log, for which a transaction begins with statements of its own, has no sure ROW_COUNT().
  if (!session.own || session.begin.length > 0 || !connection.multipleStatements) return NOT_TRIED
  if (batch.refusals.length > 0) return NOT_TRIED
  const now = known.clock.estimate()
  if (now === null) return NOT_TRIED
  const accounts = remembered(demands, known, now)
  if (accounts === null) return NOT_TRIED
  const expected = settle(batch, demands, accounts)
  if (expected.writes.length < demands.size || !expected.verdicts.every(({ allowed }) => allowed))
    return NOT_TRIED

  const assumed = expected.writes.sort(byKey).map((write) => ({
    write,
    assumption: assumptionOf(accounts.get(write.key) as Account, demands.get(write.key) as Demand, now),
  }))
  try {
    const results = await commit(connection, onCommit, assumedStatements(assumed))
    const at = integer(results[1]?.insertId)
    known.clock.observe(at)
    for (const [key, account] of accounts) accounts.set(key, { ...account, now: at })
    const { verdicts, writes } = settle(batch, demands, accounts)
    for (const write of writes) {
      const key = known.get(write.key) ?? known.add(write.key, EMPTY_HEAD)
      key.wrote(write, demands.get(write.key)?.policies ?? [])
    }
    return { verdicts, tried: true }
  } catch (error) {
    if (!isStale(error)) throw error
    onCommit(false)
    for (const key of demands.keys()) known.get(key)?.unsettle()
    return { verdicts: null, tried: true }
  }
}

const byKey = (a: { readonly key: string }, b: { readonly key: string }): number =>
  Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))

/** The accounts as this process remembers them, or null when something is not known or due to be deleted. */
function remembered(
  demands: ReadonlyMap<string, Demand>,
  knownKeys: KnownKeys,
  now: number,
): Map<string, Account> | null {
  const accounts = new Map<string, Account>()
  for (const [key, { policies, span, leaseMicros }] of demands) {
    const known = knownKeys.get(key) ?? (knownKeys.expectsNew ? new KnownKey(EMPTY_HEAD) : undefined)
    if (!known?.isSteady) return null
    if (leaseMicros > 0 || known.head.stamp > 0) return null
    if (policies.some(isLogged) && known.prunable(now, span) !== null) return null
    const { head } = known
    const at = instantOf(head, now)
    const windows = new Map<number, WindowStart>()
    for (const policy of policies) {
      const { algorithm, windowMicros } = policy
      if (algorithm === 'fixed-window') {
        // What begins at the estimated instant is written as the real one, as the window of a sliding limit is.
        if (windowStartAt(policy, at) === at) return null
        continue
      }
      const start = known.startOf(windowMicros, at - windowMicros)
      if (start === undefined) return null
      windows.set(windowMicros, start)
    }
    accounts.set(key, { head, now, windows, pruneTo: 0 })
  }
  return accounts
}

/** How far ahead of the estimate the clock may be: when a key may be swept is computed from the estimate. */
const MOST_AHEAD_MICROS = 1_000_000

/** Until the first event of a window leaves, or a fixed window ends, nothing but writes changes what is decided. */
function assumptionOf({ head, windows }: Account, { policies }: Demand, from: number): Assumption {
  const at = instantOf(head, from)
  const ends = policies.map((policy) => {
    const { algorithm, windowMicros } = policy
    if (algorithm === 'fixed-window') return windowEndAt(policy, at)
    const first = windows.get(windowMicros)?.first ?? 0
    return first === 0 ? Number.MAX_SAFE_INTEGER : first + windowMicros
  })
  return { head, from, until: Math.min(...ends, from + MOST_AHEAD_MICROS) }
}
