import { calendarOfId } from '../../limiter/calendar-options.js'
import { keyText } from '../../limiter/storage-key.js'
import { instantOf, type WindowStart } from '../../stores/account.js'
import { countedSince } from '../../stores/running-total.js'
import type { KeyRow, Reader } from './reader.js'
import { readStoredKey } from './stored-key.js'

/** What is counted of one key at one instant. A store keeps no limit, so how much is left cannot be told. */
export interface KeyState {
  /** The limiter's name; null when the stored key is not one of ours. */
  readonly limiter: string | null
  /** The key as the limiter was given it, several parts as JSON; null when it is hashed or was too long to be kept. */
  readonly key: string | null
  /** As it is stored: what `--stored` takes. */
  readonly storedKey: string
  readonly algorithm: 'sliding-window' | 'fixed-window'
  /** Length of the window; of the longest one, where several limits share the log. Null when nothing was counted yet. */
  readonly windowSeconds: number | null
  /** Of a calendar quota its windows, as in `month.15/europe/berlin`; else null. */
  readonly calendar: string | null
  /** Cost inside the window. */
  readonly used: number
  /** Until the oldest counted hit leaves (sliding) or the window ends (fixed); 0 when nothing is counted. */
  readonly resetSeconds: number
  /** Until the block ends; 0 when there is none. */
  readonly blockedSeconds: number
  /** When something was last admitted, or attempted for a fixed window: ISO 8601, UTC. Null when never. */
  readonly lastHitAt: string | null
}

/** A row, and what follows from it without a look into the log. */
export interface Estimate {
  readonly row: KeyRow
  readonly fixed: boolean
  /** Where the window begins now; 0 when there is none. */
  readonly cutoff: number
  /** How long it is; 0 when there is none. */
  readonly windowMicros: number
  /** What is used at most: exactly so much, when the window's first event is still the remembered one. */
  readonly atMost: number
  readonly start: WindowStart | null
  readonly isExact: boolean
}

export function estimate(row: KeyRow, now: number): Estimate {
  const window = readStoredKey(row.stored)?.window ?? null
  const fixed = window !== null
  const { memoWindow, memoFirst, memoBase, total, last, stamp } = row
  const at = instantOf(row, now)
  // A row has the longest window that its calendar can have; how long this one is tells the calendar.
  const current = window === null ? null : (calendarOfId(window)?.windowAt(at) ?? null)
  const windowMicros = current === null || memoWindow === 0 ? memoWindow : current.end - current.start
  const cutoff = current === null ? at - memoWindow : current.start - 1
  const start = { first: memoFirst, base: memoBase }
  const common = { row, fixed, cutoff, windowMicros }
  if (memoWindow > 0 && memoFirst > cutoff) {
    return { ...common, start, atMost: countedSince(total, memoBase), isExact: true }
  }
  // A fixed window that is over, a key that never counted, and a log whose newest event has left.
  const isEmpty = fixed || memoWindow === 0 || Math.max(last, stamp) <= cutoff
  return { ...common, start: null, atMost: isEmpty ? 0 : countedSince(total, memoBase), isExact: isEmpty }
}

/** Looks up where the windows begin that the rows alone do not tell. */
export async function exactly(reader: Reader, estimates: readonly Estimate[]): Promise<Estimate[]> {
  const open = estimates.filter(({ isExact }) => !isExact)
  const starts = await reader.starts(open.map(({ row, cutoff }) => ({ bytes: row.bytes, after: cutoff })))
  const found = new Map(open.map((each, i) => [each, starts[i] ?? null]))
  return estimates.map((each) => {
    const start = found.get(each)
    if (start === undefined) return each
    return {
      ...each,
      start,
      atMost: start === null ? 0 : countedSince(each.row.total, start.base),
      isExact: true,
    }
  })
}

export function stateOf({ row, fixed, windowMicros, atMost, start }: Estimate, now: number): KeyState {
  const parsed = readStoredKey(row.stored)
  const { blocked, last } = row
  const seconds = (micros: number): number => Math.max(0, Math.ceil(micros / 1000) / 1000)
  return {
    limiter: parsed?.limiter ?? null,
    key: parsed?.key == null ? null : keyText(parsed.key),
    storedKey: row.stored,
    algorithm: fixed ? 'fixed-window' : 'sliding-window',
    windowSeconds: windowMicros === 0 ? null : windowMicros / 1e6,
    calendar: parsed?.window == null || calendarOfId(parsed.window) == null ? null : parsed.window,
    used: atMost,
    resetSeconds: start === null || atMost === 0 ? 0 : seconds(start.first + windowMicros - now),
    blockedSeconds: seconds(blocked - now),
    lastHitAt: last === 0 ? null : new Date(last / 1000).toISOString(),
  }
}
