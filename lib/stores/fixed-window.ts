import type { Policy } from './store.js'

/*
 * The only place that knows where fixed windows begin and end. `at` is an instant of the store's clock, in microseconds
 * since the epoch. Two functions that give a number, since they are called for every hit.
 */

/** When the window that holds an instant began. */
export const windowStartAt = ({ calendar, windowMicros }: Policy, at: number): number =>
  calendar === undefined ? at - (at % windowMicros) : calendar.windowAt(at).start

/** When the window that holds an instant ends, and the next one begins. */
export const windowEndAt = ({ calendar, windowMicros }: Policy, at: number): number =>
  calendar === undefined ? at - (at % windowMicros) + windowMicros : calendar.windowAt(at).end
