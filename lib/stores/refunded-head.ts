import type { Head } from './account.js'
import type { EventTake } from './event-takes.js'
import { windowStartAt } from './fixed-window.js'
import type { Policy } from './store.js'

/**
 * The head of a key after hits were taken from its events. The remembered start of the window then holds a total that is
 * smaller by what was taken before it; where it is an event that goes, it is forgotten.
 */
export function refundedHead(head: Readonly<Head>, takes: readonly EventTake[]): Head {
  if (takes.length === 0) return head
  const { memoFirst } = head
  const beforeMemo = takes.filter(({ at }) => at < memoFirst)
  const isForgotten = takes.some(({ at, isGone }) => isGone && at === memoFirst)
  return {
    ...head,
    total: head.total - (takes.at(-1) as EventTake).sum,
    memoBase: head.memoBase - (beforeMemo.at(-1)?.sum ?? 0),
    memoWindow: isForgotten ? 0 : head.memoWindow,
    logVersion: head.logVersion + 1,
  }
}

/** The head of a key after an attempt was taken from its fixed window, if it is still that window and holds so much. */
export function refundedFixedHead(head: Readonly<Head>, policy: Policy, cost: number, at: number): Head {
  const total = head.total - cost
  // A head that began after the hit is another life of the key: it was reset meanwhile.
  const isSameWindow = head.memoFirst === windowStartAt(policy, at) && head.logVersion <= at
  return isSameWindow && total >= head.memoBase ? { ...head, total } : head
}
