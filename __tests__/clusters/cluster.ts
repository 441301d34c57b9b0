import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import type { PrivateServer } from '../servers/server.js'
import { createTestDatabase, type TestDatabase } from '../servers/test-database.js'

/** Servers that replicate to each other, each of which takes writes. */
export interface Cluster {
  /** For titles: `Galera`, `Group Replication`. */
  readonly name: string
  readonly nodes: readonly PrivateServer[]
  /** A statement after which a session reads all that was committed anywhere before. */
  readonly catchUp: string
  /** Takes a node out of the cluster: it lives, accepts connections, and refuses writes. */
  isolate(node: PrivateServer): Promise<void>
  /** Takes it in again. */
  rejoin(node: PrivateServer): Promise<void>
  /** Ends all nodes and removes what they wrote. */
  stop(): Promise<void>
}

/** How to get a cluster: see `startGalera` and `startGroupReplication`. */
export type StartCluster = () => Promise<Cluster>

/** The address of a database on one of the nodes. */
export const uriOn = (database: TestDatabase, node: PrivateServer): string => {
  const uri = new URL(database.uri)
  uri.port = String(node.port)
  return uri.href
}

/** Creates an empty database on a node and waits until all have it. */
export async function createClusterDatabase(nodes: readonly PrivateServer[]): Promise<TestDatabase> {
  const database = await createTestDatabase(nodes[0] as PrivateServer)
  await Promise.all(
    nodes.map((node) =>
      untilTrue(
        node,
        `SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '${database.name}'`,
      ),
    ),
  )
  return database
}

/** Asks a node until the first column of the answer is 1. */
export async function untilTrue(node: PrivateServer, sql: string, millis = 30_000): Promise<void> {
  const end = performance.now() + millis
  for (;;) {
    const answer = await firstValue(node, sql).catch((error: Error) => error.message)
    if (String(answer) === '1') return
    if (performance.now() > end) throw new Error(`Not true within ${millis} ms, but ${answer}: ${sql}`)
    await delay(50)
  }
}

/** Runs statements on a node, one after the other. */
export async function runOn(node: PrivateServer, statements: readonly string[]): Promise<void> {
  const client = await createConnection(node.uri)
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

async function firstValue(node: PrivateServer, sql: string): Promise<unknown> {
  const client = await createConnection({ uri: node.uri, connectTimeout: 5000 })
  try {
    const [rows] = await client.query<RowDataPacket[]>(sql)
    return Object.values(rows[0] ?? {})[0]
  } finally {
    client.destroy()
  }
}
