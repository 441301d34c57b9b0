import type { Server, ServerKind } from './server.js'

/** A server that this run does without. */
export interface SkippedServer {
  readonly kind: ServerKind
  readonly reason: string
}

/** What the global setup leaves to the global teardown, which jest runs in the same process. */
export const testRun: { servers: Server[]; skipped: SkippedServer[] } = { servers: [], skipped: [] }
