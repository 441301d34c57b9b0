import { windowStartAt } from '../fixed-window.js'
import type { Charge, Refund } from '../store.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import {
  blockKey,
  lockExisting,
  readEvents,
  takeFromAudit,
  takeFromEvents,
  takeFromFixed,
} from './correction-statements.js'
import type { Session } from './session.js'
import { bytesLiteral, createKeys, keyLiteral } from './statements.js'

/** Gives back hits in one transaction, under the locks of their keys. What is not there any more is passed over. */
export async function refundUnit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  refunds: readonly Refund[],
): Promise<void> {
  const literals = [...new Set(refunds.map(({ key }) => keyLiteral(key)))].sort()
  const sliding = refunds.filter(({ policy }) => policy.algorithm === 'sliding-window')
  const opening = [...session.begin, lockExisting(literals)]
  if (sliding.length > 0) {
    opening.push(readEvents(sliding.map(({ key, at }) => ({ rkey: keyLiteral(key), ts: at }))))
  }
  const results = await connection.run(opening)
  const found = sliding.length > 0 ? (results.at(-1)?.rows ?? []) : []
  /** What is left of each event, as refunds of one batch are taken from it one after the other. */
  const left = new Map(
    found.map(([rkey, ts, hits]) => [`${bytesLiteral(rkey as Buffer)} ${integer(ts)}`, integer(hits)]),
  )

  const statements = refunds.flatMap(({ key, policy, cost, at }) => {
    const rkey = keyLiteral(key)
    if (policy.algorithm === 'fixed-window') {
      const head = takeFromFixed(rkey, windowStartAt(policy, at), at, cost)
      return policy.audit ? [head, ...takeFromAudit(rkey, at, cost)] : [head]
    }
    const event = `${rkey} ${at}`
    const hits = left.get(event) ?? 0
    if (hits < cost) return []
    left.set(event, hits - cost)
    return takeFromEvents(rkey, at, cost, hits === cost)
  })
  await commit(connection, onCommit, statements)
}

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
