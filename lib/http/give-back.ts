import type { Request, Response } from 'express'
import type { ResolvedRateLimitOptions } from './options.js'

/**
 * Calls `refund` once when the response turns out to be one that does not count. Only a response that was sent is a
 * success or a failure: a client who hangs up before his 401 gains nothing (hazards 118, 119).
 */
export function giveBackByOutcome(
  req: Request,
  res: Response,
  options: Pick<ResolvedRateLimitOptions, 'giveBack' | 'requestWasSuccessful'>,
  refund: () => Promise<unknown>,
): void {
  const { giveBack, requestWasSuccessful } = options
  if (giveBack === 'never') return
  // 'finish' comes once, and never for an aborted response; 'close' would come for both.
  res.once('finish', async () => {
    try {
      const successful = await requestWasSuccessful(req, res)
      if (giveBack === 'both' || successful === (giveBack === 'successful')) await refund()
    } catch {
      // The response is sent. A hit that could not be given back stays counted, which is the safe side.
    }
  })
}
