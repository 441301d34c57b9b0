/** Where the store finds its database: give exactly one of `uri`, `connection` and `pool`. */
export interface MysqlStoreOptions {
  /**
   * `mysql://user:password@host:3306/database`, or with several hosts `mysql://user:password@one:3306,two:3306/database`.
   * The store opens two connections of its own, to the first host that is up and takes writes (see docs/clusters.md).
   */
  readonly uri?: string | undefined
  /** Connection options of mysql2 (`host`, `user`, `ssl`, …). The store opens two connections of its own. */
  readonly connection?: object | undefined
  /**
   * A pool of yours, made by `createPool()` of mysql2 or mysql2/promise. The store takes at most two connections at
   * a time, changes no session setting, and never closes the pool. Units go in two packets when the pool was made
   * with `multipleStatements: true`, else statement by statement.
   */
  readonly pool?: object | undefined
  /** Create missing tables before the first decision. Default true; with false they are only checked. */
  readonly install?: boolean | undefined
  /**
   * Send several statements in one packet on the store's own connections. Default true. Set false where a proxy
   * refuses that (ProxySQL with multiplexing, Vitess). Not for `pool`, which has its own setting.
   */
  readonly multipleStatements?: boolean | undefined
  /** Seconds between sweeps of abandoned keys, 1 to 86,400, or false to call `sweep()` yourself. Default 60. */
  readonly sweepSeconds?: number | false | undefined
  /**
   * Keeps what the hits on some limits come to when their events are deleted, for `usage`: seconds, up to 315,360,000 (ten
   * years), by the limits' names; 0 to end it. The database remembers it, so other stores on it need not be told.
   * Default: what the database was told, at first none.
   */
  readonly keepUsageSeconds?: Readonly<Record<string, number>> | undefined
}

/** The names in `MysqlStoreOptions`. */
export const MYSQL_OPTION_NAMES = [
  'uri',
  'connection',
  'pool',
  'install',
  'multipleStatements',
  'sweepSeconds',
  'keepUsageSeconds',
]
