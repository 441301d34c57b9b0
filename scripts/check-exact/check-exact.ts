import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Admission, checkHistory, grouped } from '../../__tests__/processes/check-history.js'
import { checkSightings, type Sighting } from '../../__tests__/processes/check-sightings.js'
import type { Outcome } from '../../__tests__/processes/hit-process.js'
import { type HitProcess, startProcess } from '../../__tests__/processes/run-processes.js'
import { openLedger, type ServerState } from './ledger.js'
import type { CheckOptions } from './options.js'

/** The limit that is checked: short windows, so that there are many of them. */
export const LIMIT = 5
export const WINDOW_SECONDS = 1
const WINDOW_MICROS = WINDOW_SECONDS * 1e6
/** A client that was refused waits a little, and longer when nobody knows. */
const RUN = { traffic: 'hot, busy and cold', callers: 16, refusedMillis: 5, undecidedMillis: 20 } as const

/** What a check found. */
export interface Findings {
  readonly server: ServerState
  readonly keys: number
  readonly admitted: number
  readonly refused: number
  /** Refusals that the store decided; the others came from a process's memory. */
  readonly refusedByStore: number
  /** How often the store could not decide, by the code of its error. */
  readonly undecided: Readonly<Record<string, number>>
  readonly stored: number
  /** What became of the server meanwhile, in words; null when nothing was noticed. */
  readonly incident: string | null
  /** What was not exact, in words. */
  readonly faults: readonly string[]
}

/**
 * Lets processes hit and checks what they were told and what is stored.
 *
 * @param signal - ends it early; the rows are removed all the same
 * @throws when it cannot be run: no server, no permission, a process that died, nothing decided
 */
export async function checkExact(options: CheckOptions, signal: AbortSignal): Promise<Findings> {
  const { place, processes, seconds, byHand } = options
  const name = `check-exact-${randomBytes(6).toString('hex')}`
  const ledger = openLedger(place)
  const before = await ledger.state()
  const begun = performance.now()
  // Everything is kept until it is checked. No sweeps: they would remove other people's keys, if only abandoned ones.
  const setting = {
    ...{ store: place, name, byHand, limit: LIMIT, windowSeconds: WINDOW_SECONDS },
    ...{ retainSeconds: 3600, timeoutMs: 5000 },
  }
  const workers: HitProcess[] = []
  const killAll = (): Promise<unknown> => Promise.all(workers.map((worker) => worker.kill()))
  signal.addEventListener('abort', killAll)
  try {
    for (let i = 0; i < processes; i += 1) {
      signal.throwIfAborted()
      workers.push(await startProcess(setting))
    }
    const outcomes = await Promise.all(
      workers.map((worker) => worker.run({ ...RUN, millis: seconds * 1000 })),
    )
    await Promise.all(workers.map((worker) => worker.end()))
    const after = await ledger.state()
    // What people write by hand has rows of its own; it is judged by what it says.
    const admissions = byHand ? null : await ledger.admissions(name)
    const incident = incidentBetween(before, after, (performance.now() - begun) / 1000)
    return { server: before, incident, ...judge(name, outcomes, admissions) }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', killAll)
    await killAll()
    // The server may still be at the last statement of a process that was killed.
    if (signal.aborted) await delay(500)
    // Without a process that was ready there are no rows, and maybe no tables.
    if (workers.length > 0 && !byHand) await ledger.remove(name)
  }
}

/** @throws Error when there is nothing to judge. */
function judge(
  name: string,
  outcomes: readonly (Outcome | null)[],
  admissions: readonly Admission[] | null,
): Omit<Findings, 'server' | 'incident'> {
  const accounts = outcomes.filter((outcome) => outcome !== null)
  if (accounts.length < outcomes.length) throw new Error('a process ended before it had told what it saw')
  const sightings = accounts.flatMap((account) => account.sightings)
  const denials = accounts
    .flatMap((account) => account.denials)
    .map(({ key, at }) => ({ key: key.slice(name.length + 1), at }))
  const undecided: Record<string, number> = {}
  for (const { codes } of accounts) {
    for (const [code, times] of Object.entries(codes)) undecided[code] = (undecided[code] ?? 0) + times
  }
  const admitted = countOf(sightings, 'admitted')
  const refused = countOf(sightings, 'refused')
  if (admitted === 0 || refused === 0) {
    const unknown = countOf(sightings, 'undecided')
    throw new Error(`nothing to check: ${admitted} admitted, ${refused} refused, ${unknown} undecided`)
  }
  const told = grouped(sightings)
  const faults = checkSightings(sightings, LIMIT, WINDOW_MICROS)
  if (admissions !== null) {
    faults.unshift(
      ...checkHistory(admissions, denials, LIMIT, WINDOW_MICROS),
      ...findUnequal(told, admissions),
    )
  }
  return {
    keys: told.size,
    ...{ admitted, refused, refusedByStore: denials.length, undecided, faults },
    stored: (admissions ?? []).reduce((sum, { hits }) => sum + hits, 0),
  }
}

const countOf = (sightings: readonly Sighting[], outcome: Sighting['outcome']): number =>
  sightings.filter((each) => each.outcome === outcome).length

/** Keys of which other hits are stored than were told. One that was undecided may be stored or not. */
function findUnequal(told: Map<string, Sighting[]>, admissions: readonly Admission[]): string[] {
  const storedOf = new Map<string, number>()
  for (const { key, hits } of admissions) storedOf.set(key, (storedOf.get(key) ?? 0) + hits)
  return Array.from(told).flatMap(([key, list]) => {
    const stored = storedOf.get(key) ?? 0
    const least = countOf(list, 'admitted')
    const most = least + countOf(list, 'undecided')
    if (stored < least) return [`${key}: ${least} were admitted, but ${stored} are stored`]
    if (stored > most) return [`${key}: at the most ${most} were admitted, but ${stored} are stored`]
    return []
  })
}

function incidentBetween(before: ServerState, after: ServerState, seconds: number): string | null {
  if (before.identity !== after.identity) return 'another server answered at the end than at the beginning'
  if (before.uptime === null || after.uptime === null) return null
  // Whole seconds on both sides.
  if (after.uptime < before.uptime + seconds - 2)
    return `the server was restarted ${after.uptime} seconds before the end`
  return null
}
