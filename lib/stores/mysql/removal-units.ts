import type { KeptUsage } from '../kept-usage.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import {
  deleteAllEvents,
  deleteEventsUpTo,
  deleteKeys,
  expiredKeys,
  extendSweep,
  forgetCount,
  forgetMemo,
  keysBetween,
  keysWithEvents,
  lockExpired,
  lockKey,
  nthEvent,
} from './removal-statements.js'
import type { Session } from './session.js'
import { bytesLiteral, keyOf, ROLLBACK } from './statements.js'
import { keepUsage } from './usage-statements.js'

/** Keys that one sweeping unit locks: a few milliseconds of work. */
const SWEEP_KEYS = 200
/** A key with at least so many events is removed on its own. */
const MANY_EVENTS = 50
/** Events that one unit deletes of such a key. */
const EVENTS_PER_UNIT = 1000

/** What one sweeping unit removed; `more` when another unit would find something. */
export interface SweptChunk {
  readonly keys: number
  readonly events: number
  readonly more: boolean
}

/** Removes some expired keys in one short transaction, and keeps the sweep for another lease. */
export async function sweepUnit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  usage: KeptUsage,
  leaseMicros: number,
): Promise<SweptChunk> {
  // Rolled back at once: without autocommit a read leaves a snapshot open.
  const [candidates] = await connection.run([expiredKeys(SWEEP_KEYS), ROLLBACK])
  if (candidates === undefined || candidates.rows.length === 0) return { keys: 0, events: 0, more: false }

  const literals = literalsOf(candidates.rows).sort()
  const locked = literalsOf(
    (await connection.run([...session.begin, lockExpired(literals)])).at(-1)?.rows ?? [],
  )
  let keys = 0
  let events = 0
  if (locked.length > 0) {
    const [crowded] = await connection.run([keysWithEvents(locked, MANY_EVENTS)])
    const large = literalsOf(crowded?.rows ?? [])
    const small = locked.filter((literal) => !large.includes(literal))
    if (small.length > 0) {
      const removal = [
        ...kept(usage, small, Number.MAX_SAFE_INTEGER),
        deleteAllEvents(small),
        deleteKeys(small),
      ]
      const [ofEvents, ofKeys] = (await connection.run(removal)).slice(-2)
      events += ofEvents?.affectedRows ?? 0
      keys += ofKeys?.affectedRows ?? 0
    }
    const [first] = large
    if (first !== undefined) {
      const removed = await removeEvents(connection, usage, first, Number.MAX_SAFE_INTEGER)
      events += removed.events
      if (removed.finished) {
        await connection.run([deleteKeys([first])])
        keys += 1
      }
    }
  }
  await commit(connection, onCommit, [extendSweep(leaseMicros)])
  return { keys, events, more: true }
}

/** Stored keys between two, in order. */
export async function keysBetweenUnit(
  connection: Connection,
  after: Buffer,
  before: Buffer,
  most: number,
): Promise<Buffer[]> {
  // Rolled back at once: without autocommit a read leaves a snapshot open.
  const statements = [keysBetween(bytesLiteral(after), bytesLiteral(before), most), ROLLBACK]
  const [found] = await connection.run(statements)
  return (found?.rows ?? []).map(([rkey]) => rkey as Buffer)
}

/** How far a reset has come. `at` is the newest event when it began: later hits are not its business. */
export interface ResetProgress {
  readonly at: number
  readonly finished: boolean
}

/**
 * Forgets a key, or a thousand of its events: the caller repeats it until it is finished.
 *
 * @param at - how far the units before this one have come; null for the first one, which ends what is not an event
 */
export async function resetUnit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  usage: KeptUsage,
  rkey: string,
  at: number | null,
): Promise<ResetProgress> {
  const row = (await connection.run([...session.begin, lockKey(rkey)])).at(-1)?.rows[0]
  if (row === undefined) {
    await commit(connection, onCommit, [])
    return { at: at ?? 0, finished: true }
  }
  const [newest, blocked] = row.map(integer) as [number, number]
  const isFirst = at === null
  const until = at ?? newest
  const { finished } = await removeEvents(connection, usage, rkey, until)
  // Hits and blocks since the first unit are not its business.
  const isUnused = newest === until && (isFirst || blocked === 0)
  const remaining = isFirst ? [forgetCount(rkey), forgetMemo(rkey)] : [forgetMemo(rkey)]
  await commit(connection, onCommit, finished && isUnused ? [deleteKeys([rkey])] : remaining)
  return { at: until, finished }
}

/** Deletes a key's oldest events, at most `EVENTS_PER_UNIT` and none later than `upTo`. */
async function removeEvents(
  connection: Connection,
  usage: KeptUsage,
  rkey: string,
  upTo: number,
): Promise<{ events: number; finished: boolean }> {
  const [nth] = await connection.run([nthEvent(rkey, EVENTS_PER_UNIT)])
  const row = nth?.rows[0]
  const end = row === undefined ? upTo : Math.min(integer(row[0]), upTo)
  const removed = (await connection.run([...kept(usage, [rkey], end), deleteEventsUpTo(rkey, end)])).at(-1)
  return { events: removed?.affectedRows ?? 0, finished: end === upTo }
}

/** What keeps the usage of events that go next, up to some time: a statement, or none. */
function kept(usage: KeptUsage, literals: readonly string[], upTo: number): string[] {
  if (usage.isEmpty) return []
  const leaving = literals.flatMap((rkey) => {
    const keepMicros = usage.microsOf(keyOf(rkey))
    return keepMicros === undefined ? [] : [{ rkey, after: -1, upTo, keepMicros }]
  })
  return leaving.length > 0 ? [keepUsage(leaving)] : []
}

const literalsOf = (rows: readonly (readonly unknown[])[]): string[] =>
  rows.map(([rkey]) => bytesLiteral(rkey as Buffer))
