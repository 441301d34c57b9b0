/** Where the store finds its file, and how it keeps it. */
export interface SqliteStoreOptions {
  /** Path of the database file, on a local disk; it is created when missing. `:memory:` keeps it in this process. */
  readonly filename: string
  /** Create missing tables before the first decision. Default true; with false they are only checked. */
  readonly install?: boolean | undefined
  /** Seconds between sweeps of abandoned keys, 1 to 86,400, or false to call `sweep()` yourself. Default 60. */
  readonly sweepSeconds?: number | false | undefined
  /**
   * Keeps what the hits on some limits come to when their events are deleted, for `usage`: seconds, up to 315,360,000 (ten
   * years), by the limits' names; 0 to end it. The database remembers it, so other stores on it need not be told.
   * Default: what the database was told, at first none.
   */
  readonly keepUsageSeconds?: Readonly<Record<string, number>> | undefined
  /** The time in milliseconds since the epoch, for tests that move it. Default `Date.now`. */
  readonly clock?: (() => number) | undefined
}

/** The names in `SqliteStoreOptions`. */
export const SQLITE_OPTION_NAMES = ['filename', 'install', 'sweepSeconds', 'keepUsageSeconds', 'clock']
