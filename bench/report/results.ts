import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Machine } from '../machine.js'
import type { Findings } from '../section.js'

/** A section's findings, and when they were measured. */
export interface Measured {
  readonly measuredAt: string
  /** The machine's load average over a minute before the run: what other programs did. 0 on a quiet machine. */
  readonly loadBefore: number
  readonly findings: Findings
}

/** What was measured on one machine, in one or several runs of some sections each. */
export interface Results {
  readonly quick: boolean
  readonly machine: Machine
  /** By the section's id. */
  readonly sections: Readonly<Record<string, Measured>>
}

/** Where results are kept, from the project's root. */
export const RESULTS_FILE = 'bench/results/latest.json'

/**
 * The results so far, to which the sections of this run are added. Results of another machine, of other servers or
 * of quick runs are not mixed with these: then they begin anew.
 */
export async function readResults(quick: boolean, machine: Machine): Promise<Results> {
  const text = await readFile(RESULTS_FILE, 'utf8').catch(() => '{}')
  const earlier = JSON.parse(text) as Partial<Results>
  const same = earlier.quick === quick && isDeepStrictEqual(earlier.machine, machine)
  return { quick, machine, sections: same ? (earlier.sections ?? {}) : {} }
}

/** The results with what a section found out just now. */
export function withFindings(results: Results, loadBefore: number, findings: Findings): Results {
  const measured = { measuredAt: new Date().toISOString(), loadBefore, findings }
  return { ...results, sections: { ...results.sections, [findings.id]: measured } }
}

/** Writes them down. */
export async function writeResults(results: Results): Promise<void> {
  await mkdir(dirname(RESULTS_FILE), { recursive: true })
  await writeFile(RESULTS_FILE, `${JSON.stringify(results, null, 2)}\n`)
}
