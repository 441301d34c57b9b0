import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Memory, Outcome } from '../../__tests__/processes/hit-process.js'
import { JournalReader } from '../../__tests__/processes/journal.js'
import { type HitProcess, startProcess } from '../../__tests__/processes/run-processes.js'
import { startServer } from '../../__tests__/servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../../__tests__/servers/test-database.js'
import { SWEEP_LEASE_MICROS } from '../../lib/stores/sweeper.js'
import { History } from './history.js'
import type { LoadOptions } from './options.js'

export const PROCESSES = 4
export const KEYS = 20_000
export const HOT_PART = 0.05
export const WINDOW_SECONDS = 10
/** Half of what is asked for at some 15,000 hits a second, so that there are admissions and denials of all keys. */
export const LIMIT = 4
const HOT_LIMIT = 100
export const SWEEP_SECONDS = 5
/** So many keys a second are never hit again, and as many are new: what is not swept shows. */
const COMING_PER_SECOND = 500
/** Within which a sweep begins and has gone through. */
const SWEPT_SECONDS = SWEEP_SECONDS + 15
/** How long the rows of such a key may stay: its window and a quarter, a minute for clocks that step back, the next sweep. */
const KEEP_SECONDS = WINDOW_SECONDS * 1.25 + 60 + SWEPT_SECONDS
/** And how long while a process that was killed in the middle of a sweep keeps the others from it. */
const UNSWEPT_KEEP_SECONDS = KEEP_SECONDS + SWEEP_LEASE_MICROS / 1e6
const NAME = 'load'
/** What is tested is not the deadline: on a machine at its limit a decision may wait for the processor. */
const TIMEOUT_MS = 5000
/** Everything was answered and read that was asked so long ago, in microseconds. */
const SETTLED_MICROS = (TIMEOUT_MS + 1000) * 1000

const RUN = {
  traffic: { keys: KEYS, comingPerSecond: COMING_PER_SECOND, hotPart: HOT_PART },
  // So many that the processor is the limit, and not the disk that each transaction waits for.
  callers: 64,
  refusedMillis: 1,
  refundPart: 0.1,
  resetEveryMillis: 100,
  tellsHits: false,
} as const

/** What a process holds at one moment, and how many keys it may remember. */
export interface MemorySample extends Memory {
  readonly known: number
}

/** The tables at one moment, and the most rows that the window and the sweep explain. */
export interface TableSizes {
  readonly keys: number
  readonly events: number
  readonly mostKeys: number
  readonly mostEvents: number
}

/** What a load test saw. */
export interface LoadFindings {
  readonly server: string
  readonly seconds: number
  readonly killed: number
  readonly counts: History['counts']
  /** Hits that were refused from memory by the processes that lived to tell. */
  readonly fromMemory: number
  readonly slowestMs: number
  readonly errors: Readonly<Record<string, number>>
  /** What was not exact, in words. */
  readonly faults: readonly string[]
  /** Of each process that lived from the beginning to the end, at equal distances. */
  readonly memory: readonly (readonly MemorySample[])[]
  /** At the same times. */
  readonly tables: readonly TableSizes[]
}

/** A process that is ready, with the journal that it writes. */
interface Opened {
  readonly id: number
  readonly process: HitProcess
  readonly journal: string
  readonly reader: JournalReader
}

/** One that hits. */
interface Member extends Opened {
  readonly outcome: Promise<Outcome | null>
}

/** How often a process is killed, in seconds. */
export const killEvery = (seconds: number): number => (seconds >= 300 ? 60 : Math.min(30, seconds / 2))
/** How often memory and tables are looked at, in seconds. */
const lookEvery = (seconds: number): number => Math.min(10, seconds / 8)

/**
 * Runs the load on a server of its own, and removes all of it afterwards.
 *
 * @param onLook - is told in words what is there, now and then
 */
export async function loadTest(
  { server: kind, seconds }: LoadOptions,
  signal: AbortSignal,
  onLook: (text: string) => void,
): Promise<LoadFindings> {
  const server = await startServer(kind)
  const folder = mkdtempSync(join(tmpdir(), 'load-'))
  const database = await createTestDatabase(server)
  const load = new Load(database, folder, seconds)
  try {
    const findings = await load.run(signal, onLook)
    return { server: server.version, ...findings }
  } finally {
    await load.stop()
    await database.close()
    await server.stop()
    rmSync(folder, { recursive: true })
  }
}

class Load {
  readonly #database: TestDatabase
  readonly #folder: string
  readonly #seconds: number
  readonly #history = new History(
    [
      { name: NAME, limit: LIMIT },
      { name: `${NAME}-hot`, limit: HOT_LIMIT },
    ],
    WINDOW_SECONDS,
    UNSWEPT_KEEP_SECONDS,
  )
  readonly #faults = new Set<string>()
  readonly #opened: HitProcess[] = []
  readonly #members: Member[] = []
  readonly #memory: MemorySample[][] = []
  readonly #tables: TableSizes[] = []
  #started = 0
  #killed = 0
  /** Until when rows may stay that a killed process would have swept, in microseconds since the epoch. */
  #unsweptUntil = 0
  #endAt = 0

  constructor(database: TestDatabase, folder: string, seconds: number) {
    this.#database = database
    this.#folder = folder
    this.#seconds = seconds
  }

  async run(signal: AbortSignal, onLook: (text: string) => void): Promise<Omit<LoadFindings, 'server'>> {
    const seconds = this.#seconds
    const ready = await Promise.all(Array.from({ length: PROCESSES }, () => this.#open()))
    const begin = performance.now()
    this.#endAt = begin + seconds * 1000
    this.#members.push(...ready.map((each) => this.#begin(each)))
    let nextKill = killEvery(seconds)
    for (let next = lookEvery(seconds); next < seconds; next = Math.min(nextKill, nextLook(next, seconds))) {
      await delay(Math.max(0, begin + next * 1000 - performance.now()), undefined, { signal })
      if (next < nextKill) {
        const { keys, events } = await this.#look()
        const { admitted, denied } = this.#history.counts
        const at = `${Math.round(next)} s`.padStart(6)
        onLook(
          `${at}  ${number(admitted)} admitted, ${number(denied)} denied by the store; ${number(keys)} and ${number(events)} rows`,
        )
      } else {
        nextKill += killEvery(seconds)
        await this.#replace()
      }
    }
    const outcomes = (await Promise.all(this.#members.map(({ outcome }) => outcome))).filter(
      (outcome) => outcome !== null,
    )
    if (outcomes.length < PROCESSES) throw new Error('a process ended before its time')
    await this.#look()
    await this.#compare()
    this.#judge(Number.POSITIVE_INFINITY)
    const denied = outcomes.reduce((sum, { counts }) => sum + counts.refused, 0)
    const byStore = this.#members.reduce((sum, { id }) => sum + this.#history.deniedBy(id), 0)
    return {
      seconds,
      killed: this.#killed,
      counts: this.#history.counts,
      fromMemory: denied - byStore,
      slowestMs: Math.max(...outcomes.map(({ slowestMs }) => slowestMs)),
      errors: this.#history.errors,
      faults: [...this.#faults],
      memory: this.#memory,
      tables: this.#tables,
    }
  }

  async #open(): Promise<Opened> {
    this.#started += 1
    const id = this.#started
    const journal = join(this.#folder, `${id}.jsonl`)
    const process = await startProcess({
      ...{ store: { uri: this.#database.uri }, name: NAME, limit: LIMIT, hotLimit: HOT_LIMIT, journal },
      ...{ windowSeconds: WINDOW_SECONDS, sweepSeconds: SWEEP_SECONDS, timeoutMs: TIMEOUT_MS },
    })
    this.#opened.push(process)
    return { id, process, journal, reader: new JournalReader(journal) }
  }

  #begin(opened: Opened): Member {
    const millis = Math.max(1, this.#endAt - performance.now())
    return { ...opened, outcome: opened.process.run({ ...RUN, millis }) }
  }

  /** Kills the newest process, in the middle of whatever it is at, and starts another in its place. */
  async #replace(): Promise<void> {
    const victim = this.#members.pop() as Member
    await victim.process.kill()
    this.#killed += 1
    this.#read(victim)
    this.#history.lose(victim.id, Date.now() * 1000)
    victim.reader.close()
    rmSync(victim.journal)
    await this.#noteLostSweep()
    this.#members.push(this.#begin(await this.#open()))
  }

  /** Whether the process that was killed may have held the sweep. One that lives holds it for a moment only. */
  async #noteLostSweep(): Promise<void> {
    const [row] = await this.#database.query('SELECT sweep_until FROM rate_limit_schema WHERE id = 1')
    const heldUntil = Number(row?.sweep_until)
    if (heldUntil > Date.now() * 1000) this.#unsweptUntil = heldUntil + SWEPT_SECONDS * 1e6
  }

  async #look(): Promise<TableSizes> {
    const until = Date.now() * 1000 - SETTLED_MICROS
    const [row] = await this.#database.query(
      'SELECT (SELECT COUNT(*) FROM rate_keys) AS `keys`, (SELECT COUNT(*) FROM rate_events) AS events',
    )
    for (const member of this.#members) this.#read(member)
    const isUnswept = Date.now() * 1000 < this.#unsweptUntil
    const most = this.#history.rowsAt(until, isUnswept ? UNSWEPT_KEEP_SECONDS : KEEP_SECONDS)
    const sizes = {
      ...{ keys: Number(row?.keys), events: Number(row?.events) },
      ...{ mostKeys: most.keys, mostEvents: most.events },
    }
    this.#tables.push(sizes)
    this.#judge(until)
    const longLived = this.#members.slice(0, PROCESSES - 1)
    const memory = await Promise.all(longLived.map(({ process }) => process.memory()))
    memory.forEach((each, i) => {
      if (each === null) throw new Error('a process ended before its time')
      const known = this.#history.knownTo((longLived[i] as Member).id)
      this.#memory[i] = [...(this.#memory[i] ?? []), { ...each, known }]
    })
    return sizes
  }

  #read({ id, reader }: Member): void {
    for (const entry of reader.read()) this.#history.add(id, entry)
  }

  #judge(until: number): void {
    for (const fault of this.#history.judge(until)) this.#faults.add(fault)
  }

  /** Whether what is stored in the last window is what was told. */
  async #compare(): Promise<void> {
    const at = Date.now() * 1000
    const rows = await this.#database.query(
      'SELECT CONVERT(rkey USING utf8mb4) AS `key`, SUM(hits) AS hits FROM rate_events WHERE ts > ? AND ts <= ? GROUP BY rkey',
      [at - WINDOW_SECONDS * 1e6, at],
    )
    const stored = new Map(rows.map(({ key, hits }) => [String(key), Number(hits)]))
    for (const [key, least, most] of this.#history.inWindow(at)) {
      const found = stored.get(key) ?? 0
      stored.delete(key)
      if (found < least || found > most)
        this.#faults.add(
          `${key}: ${found} are stored in the last window, but from ${least} to ${most} were told`,
        )
    }
    for (const [key, hits] of stored) this.#faults.add(`${key}: ${hits} are stored that nobody was told of`)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#opened.map((process) => process.kill()))
  }
}

const nextLook = (after: number, seconds: number): number =>
  (Math.floor(after / lookEvery(seconds) + 1e-9) + 1) * lookEvery(seconds)

const number = (value: number): string => value.toLocaleString('en-US')
