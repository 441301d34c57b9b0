import type { Server } from './server.js'
import type { WantedProgram } from './wanted-servers.js'

/** A server, or the browser, that this run does without. */
export interface SkippedServer {
  readonly kind: WantedProgram
  readonly reason: string
}

/** What the global setup leaves to the global teardown, which jest runs in the same process. */
export const testRun: { servers: Server[]; skipped: SkippedServer[] } = { servers: [], skipped: [] }
