import type { Store } from '../../stores/store.js'
import type { Reader } from './reader.js'
import type { SchemaReport } from './schema-fault.js'

/** A database that was opened. Over one connection: on a shared host there may be no second. */
export interface Target {
  readonly kind: 'mysql' | 'sqlite'
  readonly reader: Reader
  /** The store as the limiter uses it; it creates no table but by `install()`. */
  readonly store: Store
  /** What is missing or different in the schema. */
  schema(): Promise<SchemaReport>
  /** Sets the session up for reading beside others. Nothing of it outlives the target. */
  prepare(): Promise<void>
  /** May be called again. */
  close(): Promise<void>
}
