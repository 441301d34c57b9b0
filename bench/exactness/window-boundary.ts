const HOUR = 3600
const MARGIN_SECONDS = 300

/**
 * The length, in seconds, of a window that does not end in the next minutes, for those that begin with the clock:
 * hours, or 50 minutes while an hour is about to end.
 */
export function hoursAway(now = Date.now() / 1000): number {
  return now % HOUR < HOUR - MARGIN_SECONDS ? HOUR : 3000
}
