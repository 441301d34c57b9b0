import type { KeptUsage } from '../kept-usage.js'
import type { KeyWrite } from '../settling-key.js'
import { HEAD_COLUMNS, int, keyLiteral } from './statements.js'
import { keepUsage, type LeavingEvents } from './usage-statements.js'

/**
 * What a unit writes, under the locks it holds. REPLACE writes whole heads: with the primary key as the only unique
 * key InnoDB updates the row in place, and it needs neither VALUES() nor a row alias, on whose syntax the servers
 * disagree (hazard 48).
 */
export function writeStatements(writes: readonly KeyWrite[], usage: KeptUsage): string[] {
  const events: string[] = []
  const heads: string[] = []
  const ranges: string[] = []
  const leaving: LeavingEvents[] = []
  for (const { key, head, expiresAt, event, prune } of writes) {
    const rkey = keyLiteral(key)
    if (event) events.push(`(${rkey}, ${int(event.ts)}, ${int(event.hits)}, ${int(event.total)})`)
    heads.push(
      `(${rkey}, ${int(head.total)}, ${int(head.last)}, ${int(head.span)}, ${int(head.pruned)}, ${int(head.memoWindow)}, ${int(head.memoFirst)}, ${int(head.memoBase)}, ${int(head.blocked)}, ${int(head.logVersion)}, ${int(head.stamp)}, ${int(expiresAt)})`,
    )
    if (!prune) continue
    ranges.push(`(rkey = ${rkey} AND ts > ${int(prune.after)} AND ts <= ${int(prune.upTo)})`)
    const keepMicros = usage.microsOf(key)
    if (keepMicros !== undefined) leaving.push({ rkey, ...prune, keepMicros })
  }
  const statements: string[] = []
  if (events.length > 0) {
    statements.push(insertEvents(events))
  }
  if (heads.length > 0) {
    statements.push(`REPLACE INTO rate_keys (rkey, ${HEAD_COLUMNS}, expires_at) VALUES ${heads.join(', ')}`)
  }
  if (leaving.length > 0) statements.push(keepUsage(leaving))
  // Ranges of the primary key; without LIMIT, so that it is safe for statement based replication (hazard 44).
  if (ranges.length > 0) statements.push(`DELETE FROM rate_events WHERE ${ranges.join('\n  OR ')}`)
  return statements
}

/** Events, as rows of literals. */
export const insertEvents = (rows: readonly string[]): string =>
  `INSERT INTO rate_events (rkey, ts, hits, total) VALUES ${rows.join(', ')}`
