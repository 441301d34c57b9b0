import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Admission, checkHistory } from '../../__tests__/processes/check-history.js'
import { byKey, checkSightings, type Sighting } from './check-sightings.js'
import { openLedger, type ServerState } from './ledger.js'
import type { CheckOptions } from './options.js'
import { startWorker, type Worker } from './start-worker.js'
import type { Account } from './worker.js'

/** The limit that is checked: short windows, so that there are many of them. */
export const LIMIT = 5
export const WINDOW_SECONDS = 1
const WINDOW_MICROS = WINDOW_SECONDS * 1e6

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
  const work = {
    ...{ place, name, byHand, limit: LIMIT, windowSeconds: WINDOW_SECONDS },
    millis: seconds * 1000,
    // Everything is kept until it is checked.
    retainSeconds: 3600,
  }
  const workers: Worker[] = []
  const killAll = (): void => {
    for (const worker of workers) worker.kill()
  }
  signal.addEventListener('abort', killAll)
  try {
    for (let i = 0; i < processes; i += 1) {
      signal.throwIfAborted()
      workers.push(await startWorker(work))
    }
    const accounts = await Promise.all(workers.map((worker) => worker.run()))
    const after = await ledger.state()
    // What people write by hand has rows of its own; it is judged by what it says.
    const admissions = byHand ? null : await ledger.admissions(name)
    const incident = incidentBetween(before, after, (performance.now() - begun) / 1000)
    return { server: before, incident, ...judge(name, accounts, admissions) }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', killAll)
    killAll()
    await Promise.all(workers.map((worker) => worker.ended))
    // The server may still be at the last statement of a process that was killed.
    if (signal.aborted) await delay(500)
    // Without a process that was ready there are no rows, and maybe no tables.
    if (workers.length > 0 && !byHand) await ledger.remove(name)
  }
}

/** @throws Error when there is nothing to judge. */
function judge(
  name: string,
  accounts: readonly Account[],
  admissions: readonly Admission[] | null,
): Omit<Findings, 'server' | 'incident'> {
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
  const told = byKey(sightings)
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
