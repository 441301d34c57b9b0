/** The command line is wrong. The message says what was expected, and never repeats an address. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly code = 'ERR_USAGE'
}
