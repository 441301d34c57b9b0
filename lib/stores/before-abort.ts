import { StoreError } from './store-error.js'

/** A timer that fires so much too late, in milliseconds, has found the event loop blocked. */
export const STALL_MS = 20

/** The promise, or the signal's reason as soon as it aborts; the promise goes on for others who wait for it. */
export function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason)
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp)
    const settle = (action: () => void): void => {
      signal.removeEventListener('abort', giveUp)
      action()
    }
    promise.then(
      (value) => settle(() => resolve(value)),
      (error) => settle(() => reject(error)),
    )
  })
}

/**
 * Runs work that must end within some milliseconds, or when `parent` aborts, whether it heeds its signal or not.
 *
 * Not `AbortSignal.any` with `AbortSignal.timeout`: on Node.js 20 such a signal can be collected as garbage before it
 * has fired.
 *
 * @throws StoreError `ERR_STORE_TIMEOUT` when the time is over; `parent`'s reason when it aborts.
 */
export const withinDeadline = <T>(
  millis: number,
  work: (signal: AbortSignal) => Promise<T>,
  parent?: AbortSignal,
): Promise<T> => run(millis, work, true, parent)

/**
 * The same for work that nobody waits for, which keeps no process alive. Where several stores are down, one of their
 * checks is always under way: a process that has nothing else to do would never end.
 */
export const inBackground = <T>(millis: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  run(millis, work, false)

async function run<T>(
  millis: number,
  work: (signal: AbortSignal) => Promise<T>,
  keepsAlive: boolean,
  parent?: AbortSignal,
): Promise<T> {
  parent?.throwIfAborted()
  const deadline = new AbortController()
  const due = performance.now() + millis
  const giveUp = (): void =>
    deadline.abort(new StoreError('ERR_STORE_TIMEOUT', 'The store did not answer in time'))
  let timer: NodeJS.Timeout | undefined
  const watch = (action: () => void, delay: number): void => {
    timer = setTimeout(action, delay)
    if (!keepsAlive) timer.unref()
  }
  watch(() => {
    // A timer that fires late tells that this process stood still, not that the store did: give the time back, once.
    const lateness = performance.now() - due
    if (lateness > STALL_MS) watch(giveUp, lateness)
    else giveUp()
  }, millis)
  const follow = (): void => deadline.abort(parent?.reason)
  parent?.addEventListener('abort', follow)
  try {
    return await beforeAbort(work(deadline.signal), deadline.signal)
  } finally {
    clearTimeout(timer)
    parent?.removeEventListener('abort', follow)
  }
}
