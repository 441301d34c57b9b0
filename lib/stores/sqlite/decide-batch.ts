import { type Account, EMPTY_HEAD, type Head, instantOf, pruneIsDue, type WindowStart } from '../account.js'
import { type Demand, demandsOf, demandsOfPeek } from '../demand.js'
import { byAlgorithm, eventTakes, REACH_ALONE, REACH_TOGETHER, refundsByKey } from '../event-takes.js'
import type { KeptUsage } from '../kept-usage.js'
import { refundedFixedHead, refundedHead } from '../refunded-head.js'
import { settle, settlePeek } from '../settle.js'
import type { KeyWrite, RetryLookup } from '../settling-key.js'
import type { Batch, Charge, Reading, Refund, Verdict } from '../store.js'
import type { SqliteDatabase } from './open-sqlite.js'
import type { Statements } from './statements.js'
import { usageStatements } from './usage-statements.js'

/** A head as its row holds it. */
type StoredHead = Head & { readonly expiresAt: number }

/** An account, and the row it was read from; undefined when there is none. */
type StoredAccount = Account & { readonly stored: StoredHead | undefined }

/** An open file: its statements, and whose usage is kept when events are deleted. */
export interface Open {
  readonly database: SqliteDatabase
  readonly statements: Statements
  readonly usage: KeptUsage
}

/** Decides one batch. The caller holds the write lock, and read `now`, in microseconds, under it. */
export function decideBatch(open: Open, batch: Batch, now: number): Verdict[] {
  const { statements } = open
  const demands = demandsOf(batch)
  const accounts = readAccounts(statements, demands.values(), now)
  const { verdicts, writes, lookups } = settle(batch, demands, accounts)
  for (const write of writes) writeKey(open, write, accounts.get(write.key)?.stored)
  for (const lookup of lookups) resolveLookup(statements, lookup)
  return verdicts
}

/** Reads the state of the charges, in the caller's transaction. */
export function peekCharges(statements: Statements, charges: readonly Charge[], now: number): Reading[] {
  const accounts = readAccounts(statements, demandsOfPeek(charges).values(), now)
  const { readings, lookups } = settlePeek(charges, accounts)
  for (const lookup of lookups) resolveLookup(statements, lookup)
  return readings
}

function readAccounts(
  statements: Statements,
  demands: Iterable<Demand>,
  now: number,
): Map<string, StoredAccount> {
  const accounts = new Map<string, StoredAccount>()
  for (const { key, policies, span } of demands) {
    const rkey = bytesOf(key)
    const stored = storedHead(statements, rkey)
    const head = stored ?? EMPTY_HEAD
    const at = instantOf(head, now)
    const windows = new Map<number, WindowStart>()
    for (const { algorithm, windowMicros } of policies) {
      if (algorithm === 'fixed-window') continue
      const cutoff = at - windowMicros
      const remembered = head.memoWindow >= windowMicros && head.memoFirst > cutoff
      const start = remembered
        ? { first: head.memoFirst, base: head.memoBase }
        : (statements.firstEvent.get(rkey, cutoff) as WindowStart | undefined)
      windows.set(windowMicros, start ?? { first: 0, base: 0 })
    }
    const keep = Math.max(head.span, span)
    accounts.set(key, { head, now, windows, pruneTo: pruneIsDue(head, at, keep) ? at - keep : 0, stored })
  }
  return accounts
}

/** Keys are bytes, as in MySQL, so that both behave alike. */
export const bytesOf = (key: string): Uint8Array => Buffer.from(key, 'utf8')

function writeKey(
  open: Open,
  { key, head, expiresAt, event, prune }: KeyWrite,
  stored: StoredHead | undefined,
): void {
  const { statements } = open
  const rkey = bytesOf(key)
  if (event) statements.insertEvent.run(rkey, event.ts, event.hits, event.total)
  writeHead(statements, rkey, head, expiresAt, stored)
  if (prune) deleteEvents(open, rkey, prune.after, prune.upTo)
}

/** Deletes a key's events with `after < ts <= upTo`, all that deletes events, and keeps what they come to as usage. */
export function deleteEvents(
  { database, statements, usage }: Open,
  rkey: Uint8Array,
  after: number,
  upTo: number,
): number {
  const keepMicros = usage.isEmpty ? undefined : usage.microsOf(Buffer.from(rkey).toString('utf8'))
  if (keepMicros !== undefined) usageStatements(database).keep.run(keepMicros, rkey, after, upTo)
  return Number(statements.pruneEvents.run(rkey, after, upTo).changes)
}

/** @param stored - the row as it is, undefined when there is none */
function writeHead(
  statements: Statements,
  rkey: Uint8Array,
  head: Head,
  expiresAt: number,
  stored: StoredHead | undefined,
): void {
  const { total, last, span, pruned, memoWindow, memoFirst, memoBase, blocked, logVersion, stamp } = head
  const row = [total, last, span, pruned, memoWindow, memoFirst, memoBase, blocked, logVersion, stamp, rkey]
  if (stored === undefined) {
    statements.insertHead.run(...row, expiresAt)
    return
  }
  statements.updateHead.run(...row)
  if (stored.expiresAt !== expiresAt) statements.updateExpiry.run(expiresAt, rkey)
}

const storedHead = (statements: Statements, rkey: Uint8Array): StoredHead | undefined =>
  statements.head.get(rkey) as StoredHead | undefined

/** Gives back hits that are still there, and tells which it left. The caller holds the write lock. */
export function refundHits(statements: Statements, refunds: readonly Refund[]): Refund[] {
  const byKey = refundsByKey(refunds)
  const left: Refund[] = []
  for (const [key, ofKey] of byKey) {
    const rkey = bytesOf(key)
    const reach = statements.nthNewestEvent.get(rkey, byKey.size > 1 ? REACH_TOGETHER : REACH_ALONE)
    const isNear = ({ policy, at }: Refund): boolean =>
      policy.algorithm === 'fixed-window' || at > ((reach as { ts: number } | undefined)?.ts ?? -1)
    if (byKey.size > 1) left.push(...ofKey.filter((refund) => !isNear(refund)))
    refundKey(statements, rkey, ofKey.filter(isNear))
  }
  return left
}

function refundKey(statements: Statements, rkey: Uint8Array, refunds: readonly Refund[]): void {
  const stored = storedHead(statements, rkey)
  if (stored === undefined) return
  let head: Head = stored
  const hitsAt = (at: number): number =>
    (statements.eventHits.get(rkey, at) as { hits: number } | undefined)?.hits ?? 0

  const [sliding, fixed] = byAlgorithm(refunds)
  for (const { policy, cost, at } of fixed) {
    head = refundedFixedHead(head, policy, cost, at)
    if (policy.audit && hitsAt(at) >= cost) takeFromEvent(statements, rkey, at, cost)
  }
  const takes = eventTakes(sliding, hitsAt)
  for (const { at, cost, sum, before } of takes) {
    statements.takeFromTotals.run(sum, rkey, at, before)
    takeFromEvent(statements, rkey, at, cost)
  }
  head = refundedHead(head, takes)
  if (head !== stored) writeHead(statements, rkey, head, stored.expiresAt, stored)
}

function takeFromEvent(statements: Statements, rkey: Uint8Array, at: number, cost: number): void {
  statements.takeFromEvent.run(cost, rkey, at)
  statements.deleteEvent.run(rkey, at)
}

/** Blocks a key, which may be new, until an instant; a longer block stays. */
export function blockKey(statements: Statements, key: string, until: number): void {
  const rkey = bytesOf(key)
  const head = storedHead(statements, rkey)
  const blocked = Math.max(head?.blocked ?? 0, until)
  const expiresAt = Math.max(head?.expiresAt ?? 0, blocked)
  writeHead(statements, rkey, { ...EMPTY_HEAD, ...head, blocked }, expiresAt, head)
}

/** Writes, and takes it back in the same transaction. No stored form of a key is a NUL. */
export function probeWrite(statements: Statements): void {
  const rkey = new Uint8Array(1)
  writeHead(statements, rkey, EMPTY_HEAD, 0, undefined)
  statements.insertEvent.run(rkey, 1, 1, 1)
  statements.deleteEvents.run(rkey)
  statements.deleteKey.run(rkey)
}

function resolveLookup(statements: Statements, { key, after, base, excess, resolve }: RetryLookup): void {
  const event = statements.reachedAt.get(bytesOf(key), after, base, excess) as { ts: number } | undefined
  if (event) resolve(event.ts)
}
