import { appendFileSync, closeSync, openSync, readSync } from 'node:fs'
import type { Recorder } from './record-decisions.js'

/** One line of a journal, as JSON. Times are microseconds since the epoch. */
export type Entry =
  /** The store is asked: hits on keys at a cost, refunds of what is stored under a time, or resets. */
  | {
      readonly ask: number
      readonly at: number
      readonly hits: readonly (readonly [key: string, cost: number])[]
    }
  | {
      readonly ask: number
      readonly at: number
      readonly refunds: readonly (readonly [key: string, ts: number, cost: number])[]
    }
  | { readonly ask: number; readonly at: number; readonly resets: readonly string[] }
  /** It has decided the hits of a question: for each the time, and whether it was admitted. */
  | { readonly of: number; readonly verdicts: readonly (readonly [ts: number, isAdmitted: 0 | 1])[] }
  /** It has answered a question, or has failed. */
  | { readonly of: number; readonly at: number; readonly isFailed: boolean }
  /** A caller was told of a failure. */
  | { readonly error: string }

const now = (): number => Date.now() * 1000

/**
 * Writes what a store is asked, before it is, and what it says, before anybody else hears it: into a file at once, so
 * that a process that is killed leaves nothing out. For hits with one key each.
 */
export function writeJournal(filename: string): { recorder: Recorder<number>; error(code: string): void } {
  const file = openSync(filename, 'a')
  let asked = 0
  const write = (entry: Entry): void => appendFileSync(file, `${JSON.stringify(entry)}\n`)
  const ask = (
    what:
      | { hits: [string, number][] }
      | { refunds: [string, number, number][] }
      | { resets: readonly string[] },
  ): number => {
    asked += 1
    write({ ask: asked, at: now(), ...what })
    return asked
  }
  return {
    error: (error) => write({ error }),
    recorder: {
      decideAsked: ({ hits }) =>
        ask({ hits: hits.map(({ charges, cost }) => [charges[0]?.key as string, cost]) }),
      decided(_, verdicts, of = 0) {
        write({
          of,
          verdicts: verdicts.map(({ allowed, readings }) => [readings[0]?.at as number, allowed ? 1 : 0]),
        })
      },
      refundAsked: (refunds) => ask({ refunds: refunds.map(({ key, at, cost }) => [key, at, cost]) }),
      resetAsked: (resets) => ask({ resets }),
      // To the end of the millisecond.
      done: (of = 0, isFailed) => write({ of, at: now() + 1000, isFailed }),
    },
  }
}

const CHUNK = 1 << 20

/** Reads what has been added to a journal since the last time. */
export class JournalReader {
  readonly #file: number
  readonly #buffer = Buffer.alloc(CHUNK)
  #rest = Buffer.alloc(0)

  constructor(filename: string) {
    this.#file = openSync(filename, 'r')
  }

  *read(): Generator<Entry> {
    for (;;) {
      const length = readSync(this.#file, this.#buffer)
      if (length === 0) return
      const text = Buffer.concat([this.#rest, this.#buffer.subarray(0, length)])
      const end = text.lastIndexOf('\n') + 1
      // A line may end within a chunk, or within what is still being written.
      this.#rest = text.subarray(end)
      for (const line of text.subarray(0, end).toString().split('\n')) if (line !== '') yield JSON.parse(line)
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}
