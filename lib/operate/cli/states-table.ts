import { durationText } from './duration-text.js'
import type { KeyState } from './key-state.js'
import { numberText } from './number-text.js'
import { printable } from './printable.js'
import { textTable } from './text-table.js'

/** States as a table for people. */
export function statesTable(states: readonly KeyState[], now: number): string {
  return textTable(
    ['limiter', 'key', '>used', '>window', 'counts', '>frees in', '>last hit', 'blocked for'],
    states.map((state) => [
      state.limiter ?? '?',
      printable(state.key ?? state.storedKey),
      numberText(state.used),
      state.calendar ?? (state.windowSeconds === null ? '-' : durationText(state.windowSeconds)),
      state.algorithm === 'fixed-window' ? 'fixed' : 'sliding',
      state.resetSeconds === 0 ? '-' : durationText(state.resetSeconds),
      state.lastHitAt === null ? 'never' : ago(now, Date.parse(state.lastHitAt)),
      state.blockedSeconds === 0 ? '' : durationText(state.blockedSeconds),
    ]),
  )
}

/** @param now - microseconds, of the clock that wrote the other */
function ago(now: number, then: number): string {
  const seconds = (now / 1000 - then) / 1000
  return seconds < 0 ? `in ${durationText(-seconds)}` : `${durationText(seconds)} ago`
}
