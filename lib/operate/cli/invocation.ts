import type { Address } from './address.js'
import type { Answer } from './answer.js'
import type { Target } from './target.js'

/** What commands have of the program around them. */
export interface Invocation {
  /** Opens the database of the address, lets `work` answer, and closes it. */
  onDatabase(
    work: (target: Target, address: Address) => Promise<Answer>,
    options?: OpenOptions,
  ): Promise<void>
  /**
   * What kind of database the address is of, null where none is given.
   *
   * @throws UsageError for an address that is none
   */
  databaseKind(): Address['kind'] | null
  /** Answers without a database. */
  answer(answer: Answer): void
  /** Where progress is shown: standard error, or nothing with `--json`. */
  readonly progress: NodeJS.WriteStream | null
}

export interface OpenOptions {
  /** Whether a SQLite file may be made. Default false. */
  readonly mayCreate?: boolean
  /** Whether the session is set up for reading beside others; not where it is to be seen as it begins. Default true. */
  readonly prepare?: boolean
}
