import type { Head } from './account.js'
import { windowStartAt } from './fixed-window.js'
import type { Policy } from './store.js'

/**
 * The head of a key after one of its hits was given back, or null when there is nothing to give back.
 *
 * A sliding window's caller has found the hit's event, and takes the cost out of it and out of all later totals. The
 * remembered start of the window then holds a total that is smaller by as much, unless it lies at or before the hit;
 * where it is the hit's own event, which may go, it is forgotten.
 */
export function refundedHead(head: Readonly<Head>, policy: Policy, cost: number, at: number): Head | null {
  const total = head.total - cost
  if (policy.algorithm === 'fixed-window') {
    // A head that began after the hit is another life of the key: it was reset meanwhile.
    const isSameWindow = head.memoFirst === windowStartAt(policy, at) && head.logVersion <= at
    return isSameWindow && total >= head.memoBase ? { ...head, total } : null
  }
  return {
    ...head,
    total,
    memoBase: head.memoFirst > at ? head.memoBase - cost : head.memoBase,
    memoWindow: head.memoFirst === at ? 0 : head.memoWindow,
    logVersion: head.logVersion + 1,
  }
}
