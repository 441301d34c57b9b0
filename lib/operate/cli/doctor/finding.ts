/**
 * How much a finding matters.
 *
 * - `ok`: as it should be.
 * - `note`: the limiter works; worth knowing.
 * - `warning`: it works, but something will hurt.
 * - `problem`: it does not work, or is not exact.
 */
export type Level = 'ok' | 'note' | 'warning' | 'problem'

/** What one check of the doctor found. */
export interface Finding {
  /** The check's name, which `--ignore` takes: stable. */
  readonly check: string
  readonly level: Level
  /** What is the case, in a sentence. */
  readonly found: string
  /** What to do about it, for a developer without a DBA; null when there is nothing to do. */
  readonly advice: string | null
  /** Statements that mend it, to be copied; may need a user with more rights. */
  readonly statements: readonly string[]
}

export const ok = (check: string, found: string): Finding => ({
  ...{ check, level: 'ok', found, advice: null, statements: [] },
})

const finding =
  (level: Level) =>
  (check: string, found: string, advice: string, statements: readonly string[] = []): Finding => ({
    ...{ check, level, found, advice, statements },
  })

export const note = finding('note')
export const warning = finding('warning')
export const problem = finding('problem')
