import type { ServerKind } from './server.js'

/**
 * No server of a kind can be had on this machine. The message says why, for each way, and what one can do.
 */
export class ServerUnavailableError extends Error {
  readonly code = 'ERR_SERVER_UNAVAILABLE'
  readonly kind: ServerKind

  constructor(kind: ServerKind, reasons: readonly string[]) {
    const tried = reasons.map((reason) => `  - ${reason.replaceAll('\n', '\n    ')}`).join('\n')
    super(
      `No ${kind} server can be had on this machine. Tried:\n${tried}\nAny one of these helps: ` +
        `set DATABASE_URL=mysql://user:password@host:port/ to the address of a running ${kind} server; ` +
        `put ${kind === 'mysql' ? 'mysqld' : 'mariadbd'} on the PATH; run on Debian with network access; ` +
        'start a Docker engine. To test without it, set RATE_LIMIT_TEST_SERVERS=sqlite.',
    )
    this.name = 'ServerUnavailableError'
    this.kind = kind
  }
}
