import type { EXIT } from './exit-code.js'

/** What a command has to say, in both forms; only one of them is printed. */
export interface Answer {
  /** For people. Without the line break at its end. */
  readonly text: string
  /** For programs: what `--json` prints, beside the command's name. Its shape is documented and stays. */
  readonly json: Readonly<Record<string, unknown>>
  readonly exitCode: typeof EXIT.fine | typeof EXIT.finding
}
