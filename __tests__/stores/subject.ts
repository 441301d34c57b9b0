import type { Store } from '../../lib/stores/store.js'

/** A store under test, with a clock that the test moves and a view of what it keeps. */
export interface Subject {
  readonly store: Store
  /** Sets the store's clock, in milliseconds since the epoch. */
  setClock(millis: number): Promise<void>
  /** How many rows, or entries, the store keeps in all. */
  size(): Promise<{ keys: number; events: number }>
  close(): Promise<void>
}

/** Opens a store that has nothing in it yet. */
export type OpenSubject = () => Promise<Subject>

/** The instant at which tests begin, in milliseconds: the start of a minute, so that windows of a minute begin too. */
export const START = 1_800_000_000_000
