/** A difference between the schema and the database. */
export interface SchemaFault {
  readonly table: string
  /** In words: "column rate_keys.span is missing". */
  readonly what: string
  /** The whole table is missing, so that installing creates it. */
  readonly missingTable: boolean
}

/** The differences, and the statements that remove them. */
export interface SchemaReport {
  readonly faults: readonly SchemaFault[]
  /** Empty where no statement helps. */
  readonly statements: readonly string[]
}
