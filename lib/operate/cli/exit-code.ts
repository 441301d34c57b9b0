/**
 * What the program ends with. Documented in docs/command-line.md; scripts rely on it.
 *
 * - `fine`: done, and nothing to tell.
 * - `finding`: done, and something stands out: `doctor` found a fault, the key of `status` is blocked, another process
 *   holds the sweep.
 * - `usage`: the command line is wrong; nothing was done.
 * - `failed`: the database could not be reached, or refused.
 * - `interrupted`: Ctrl-C.
 */
export const EXIT = { fine: 0, finding: 1, usage: 2, failed: 3, interrupted: 130 } as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
