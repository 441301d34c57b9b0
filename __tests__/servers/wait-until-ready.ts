import { setTimeout as delay } from 'node:timers/promises'
import { type ConnectionOptions, createConnection, type RowDataPacket } from 'mysql2/promise'

/** When to give up waiting. */
export interface Patience {
  readonly milliseconds: number
  /** Why waiting is futile, for example that the process has ended; `undefined` as long as there is hope. */
  hopeless(): string | undefined | Promise<string | undefined>
}

/** Asks until the server answers a query, and returns its version. */
export async function waitUntilReady(
  connection: ConnectionOptions,
  { milliseconds, hopeless }: Patience,
): Promise<string> {
  const end = Date.now() + milliseconds
  for (;;) {
    const reason = await hopeless()
    if (reason) throw new Error(reason)
    try {
      return await askVersion(connection)
    } catch (error) {
      if (Date.now() > end) throw new Error(`No answer within ${milliseconds} ms`, { cause: error })
      await delay(20)
    }
  }
}

/** Connects once, asks the server for its version and disconnects. */
export async function askVersion(connection: ConnectionOptions): Promise<string> {
  const client = await createConnection({ connectTimeout: 5_000, ...connection })
  try {
    const [rows] = await client.query<RowDataPacket[]>('SELECT VERSION() AS version')
    return String(rows[0]?.version)
  } finally {
    client.destroy()
  }
}
