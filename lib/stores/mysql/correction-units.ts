import { byAlgorithm, eventTakes, REACH_ALONE, REACH_TOGETHER, refundsByKey } from '../event-takes.js'
import { windowStartAt } from '../fixed-window.js'
import type { Charge, Refund } from '../store.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import {
  blockKey,
  lockExisting,
  readEvents,
  readReach,
  takeFromAudit,
  takeFromEvents,
  takeFromFixed,
} from './correction-statements.js'
import type { Session } from './session.js'
import { bytesLiteral, createKeys, keyLiteral, sortedLiterals } from './statements.js'

/**
 * Gives back hits in one transaction, under the locks of their keys, and tells which it left for one of their own. What is
 * not there any more is passed over.
 */
export async function refundUnit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  refunds: readonly Refund[],
): Promise<Refund[]> {
  const byKey = refundsByKey(refunds)
  const [sliding] = byAlgorithm(refunds)
  const opening = [...session.begin, lockExisting(sortedLiterals(byKey.keys()))]
  if (sliding.length > 0) {
    const reach = byKey.size > 1 ? REACH_TOGETHER : REACH_ALONE
    const keys = new Set(sliding.map(({ key }) => keyLiteral(key)))
    opening.push(readReach([...keys], reach))
    opening.push(readEvents(sliding.map(({ key, at }) => ({ rkey: keyLiteral(key), ts: at }))))
  }
  const results = await connection.run(opening)
  const [reach, events] = sliding.length > 0 ? results.slice(-2).map(({ rows }) => rows) : [[], []]
  const reaches = new Map(reach?.map(([rkey, ts]) => [bytesLiteral(rkey as Buffer), integer(ts)]))
  const hits = new Map(
    events?.map(([rkey, ts, held]) => [eventId(bytesLiteral(rkey as Buffer), integer(ts)), integer(held)]),
  )

  const left: Refund[] = []
  const statements: string[] = []
  for (const [key, ofKey] of byKey) {
    const rkey = keyLiteral(key)
    const [ofEvents, ofFixed] = byAlgorithm(ofKey)
    for (const { policy, cost, at } of ofFixed) {
      statements.push(takeFromFixed(rkey, windowStartAt(policy, at), at, cost))
      if (policy.audit) statements.push(...takeFromAudit(rkey, at, cost))
    }
    const isNear = ({ at }: Refund): boolean => at > (reaches.get(rkey) ?? -1)
    if (byKey.size > 1) left.push(...ofEvents.filter((refund) => !isNear(refund)))
    const takes = eventTakes(ofEvents.filter(isNear), (at) => hits.get(eventId(rkey, at)) ?? 0)
    if (takes.length > 0) statements.push(...takeFromEvents(rkey, takes))
  }
  await commit(connection, onCommit, statements)
  return left
}

const eventId = (rkey: string, ts: number): string => `${rkey} ${ts}`

/** Blocks a key, which may be new, by the database's clock. */
export async function blockUnit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  { key }: Charge,
  micros: number,
): Promise<void> {
  const rkey = keyLiteral(key)
  await connection.run([...session.begin, createKeys([rkey])])
  await commit(connection, onCommit, [blockKey(rkey, micros)])
}
