import { setTimeout as delay } from 'node:timers/promises'
import { type Admission, checkHistory } from '../processes/check-history.js'
import type { Traffic } from './traffic.js'
import type { TrafficReport, TrafficRun } from './traffic-worker.js'

/** The deadline of every decision in these tests, in milliseconds: the default. */
export const TIMEOUT_MS = 250
/** A deadline that a busy machine keeps too, for traffic of which nothing may be late. */
export const PATIENT_MS = 2000
/** How soon a store must decide again after its database is back, in milliseconds. */
const RECOVERY_MS = 2000
/** What is watched of the time after that, in milliseconds. */
const AFTERMATH_MS = 300
const WARM_UP_MS = 300
/**
 * How often it is looked for what is left over, in milliseconds: the server's list of transactions is made anew only when
 * nobody has read it for 100. Who looks more often sees the first list for ever.
 */
const LOOK_MS = 150

/** Of all processes together; far more where nothing else uses the machine. */
const LEAST_DECISIONS = 150

/** The lowest limit that may have leases. */
const LEAST_LIMIT_OF_LEASES = 20

/** What a machine that is busy with other things can make of a store that is well. */
const BUSY_CODES = ['ERR_STORE_TIMEOUT', 'ERR_STORE_CAPACITY']

/** A store's two connections, and as many that are being closed. */
const MOST_SOCKETS = 4

/** What the traffic is when nothing else is said: every key is at its limit within moments. */
export const RUN = { keys: 20, callers: 16, limit: 5, windowSeconds: 0.5 }

/** Something that goes wrong, and how it is mended. */
export interface Fault {
  begin(): Promise<unknown> | unknown
  end?(): Promise<unknown> | unknown
  /** How long it stays broken, in milliseconds. Default 1000: long enough for the breaker to open. */
  readonly lastsMs?: number
  /** Whether the store decides again afterwards. Default true. */
  readonly recovers?: boolean
  /** Whether what was counted before is still there. Default true. */
  readonly keepsRows?: boolean
  /** Units that the limiter takes ahead: more is stored then than was told. */
  readonly lease?: number
  /** More processes, which hit the same keys. */
  readonly others?: readonly Traffic[]
}

/** What must be looked at after a fault. */
export interface Scene {
  readonly traffic: Traffic
  /** All that was admitted and is stored. */
  admissions(): Promise<Admission[]>
  /** What is left over on the server: connections too many, open transactions. In words. */
  leftovers(): Promise<string[]>
}

/** What a fault did, as the traffic saw it. */
export interface Damage {
  /** How often the store failed, by the code of its error. */
  readonly codes: Record<string, number>
  readonly decisions: number
  /** Hits that are stored although nobody was told that they are admitted. */
  readonly unknown: number
}

let runs = 0

/**
 * Lets traffic run before, during and after a fault, and expects what holds for each of them: every decision in time,
 * a store that is back within two seconds and stays, a history without a window over its limit, and nothing left
 * behind. That nothing crashes is watched by `Traffic`.
 */
export async function survive(scene: Scene, fault: Fault): Promise<Damage> {
  const { lastsMs = 1000, recovers = true, keepsRows = true, others = [], lease } = fault
  const traffics = [scene.traffic, ...others]
  runs += 1
  const limit = lease === undefined ? RUN.limit : LEAST_LIMIT_OF_LEASES
  const run: TrafficRun = {
    ...RUN,
    limit,
    callers: RUN.callers / traffics.length,
    prefix: `run${runs}`,
    lease,
  }
  await Promise.all(traffics.map((traffic) => traffic.start(run)))
  await delay(WARM_UP_MS)
  await fault.begin()
  await delay(lastsMs)
  await fault.end?.()
  const mended = Date.now()
  await delay(RECOVERY_MS + AFTERMATH_MS)
  const reports = await Promise.all(traffics.map((traffic) => traffic.stop()))

  for (const { late, decisions, served, failed, sockets } of reports) {
    expect(late).toEqual([])
    expect(sockets).toBeLessThanOrEqual(MOST_SOCKETS)
    expect(decisions).toBeGreaterThan(LEAST_DECISIONS / traffics.length)
    if (!recovers) continue
    const back = served.find((at) => at >= mended) ?? Number.POSITIVE_INFINITY
    expect(back - mended).toBeLessThan(RECOVERY_MS)
    const isAftermath = (at: number): boolean => at > mended + RECOVERY_MS
    expect(served.filter(isAftermath)).not.toEqual([])
    const codesAfter = failed.filter(({ at }) => isAftermath(at)).map(({ code }) => code)
    expect(codesAfter.filter((code) => !BUSY_CODES.includes(code))).toEqual([])
  }
  const unknown = keepsRows ? await checkStored(scene, reports, run) : 0
  await untilNone(scene.leftovers)
  const decisions = reports.reduce((sum, report) => sum + report.decisions, 0)
  return { codes: sumOf(reports.map(({ codes }) => codes)), decisions, unknown }
}

/** No window above its limit, no denial without a reason, and told to the callers what is stored, but for a few. */
async function checkStored(
  scene: Scene,
  reports: readonly TrafficReport[],
  { prefix, limit, windowSeconds, lease }: TrafficRun,
): Promise<number> {
  const all = await scene.admissions()
  const log = all.filter(({ key }) => key.startsWith(`t:${prefix} `))
  // With leases hits may be refused early, for units that are given back later.
  const denials = lease === undefined ? reports.flatMap((report) => report.denials) : []
  expect(checkHistory(log, denials, limit, windowSeconds * 1e6)).toEqual([])
  const stored = sumOf(log.map(({ key, hits }) => ({ [key.slice(2)]: hits })))
  const admitted = sumOf(reports.map((report) => report.admitted))
  const degraded = sumOf(reports.map((report) => report.degraded))
  let unknown = 0
  for (const key of new Set([...Object.keys(stored), ...Object.keys(admitted)])) {
    const { [key]: told = 0 } = admitted
    const { [key]: kept = 0 } = stored
    // Of a hit whose answer was lost nobody knows but the database: it counts, and was admitted by nobody's word.
    expect({ key, kept, told }).toEqual({ key, kept: expect.any(Number), told: Math.min(told, kept) })
    if (lease === undefined) expect(kept - told).toBeLessThanOrEqual(degraded[key] ?? 0)
    unknown += kept - told
  }
  return unknown
}

function sumOf(counts: readonly Record<string, number>[]): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const each of counts)
    for (const [name, count] of Object.entries(each)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/** Servers take a moment to see that a connection is gone. */
async function untilNone(leftovers: () => Promise<string[]>): Promise<void> {
  const end = performance.now() + RECOVERY_MS
  for (;;) {
    const found = await leftovers()
    if (found.length === 0) return
    if (performance.now() > end) expect(found).toEqual([])
    await delay(LOOK_MS)
  }
}
