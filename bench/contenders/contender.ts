/** Where a contender counts. */
export type StoreKind = 'mysql' | 'mariadb' | 'redis' | 'sqlite' | 'memory'

/** What a contender enforces: so many hits in so many seconds. */
export interface Rule {
  readonly limit: number
  readonly windowSeconds: number
}

/** One instance of a contender, with connections of its own. */
export interface Instance {
  /** Charges a key. True when the hit is admitted; rejects when the limiter could not tell. */
  hit(key: string): Promise<boolean>
  close(): Promise<void>
}

/** A limiter that takes part in the benchmark. */
export interface Contender {
  /** As tables call it. */
  readonly name: string
  readonly store: StoreKind
  readonly algorithm: 'sliding window' | 'fixed window'
  /** What it is configured with, beside the rule, and on whose advice. */
  readonly configuration: string
  /**
   * Opens an instance. Instances on one place share their counters, unless they are in memory.
   *
   * @param place - a URI with its database, a file, or nothing, by {@link store}
   */
  open(place: string, rule: Rule): Promise<Instance>
}
