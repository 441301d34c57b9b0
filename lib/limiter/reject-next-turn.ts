/**
 * Rejects in the next turn of the event loop: at once, but a caller who asks again at once, for as long as it takes, must
 * not keep this process from finding out that the store is back.
 */
export const rejectNextTurn = (error: unknown): Promise<never> =>
  new Promise((_, reject) => setImmediate(reject, error))
