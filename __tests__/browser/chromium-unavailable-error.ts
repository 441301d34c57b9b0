/** No Chromium can be had on this machine. The message says why, for each way, and what one can do. */
export class ChromiumUnavailableError extends Error {
  readonly code = 'ERR_CHROMIUM_UNAVAILABLE'

  constructor(reasons: readonly string[]) {
    const tried = reasons.map((reason) => `  - ${reason.replaceAll('\n', '\n    ')}`).join('\n')
    super(
      `No chromium can be had on this machine. Tried:\n${tried}\nAny one of these helps: put chromium on the PATH; ` +
        'run on Debian with network access. To test without it, set RATE_LIMIT_TEST_SERVERS=sqlite,mysql,mariadb.',
    )
    this.name = 'ChromiumUnavailableError'
  }
}
