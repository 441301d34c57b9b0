import { createPool } from 'mysql2'
import { Limiter, MysqlStore, SqliteStore } from '../../lib/index.js'
import type { Store } from '../../lib/stores/store.js'
import { type Denial, recordDenials } from '../processes/record-denials.js'

/** Where the traffic counts: through a store's own connections, a pool of the application, one that was ended, a file. */
export type TrafficPlace =
  | { readonly uri: string; readonly multipleStatements?: boolean }
  | { readonly pool: string }
  | { readonly endedPool: string }
  | { readonly filename: string }

/** Where the traffic counts, and how long a decision may take. */
export interface TrafficSetting {
  readonly store: TrafficPlace
  readonly timeoutMs: number
}

/** Hits, until they are stopped, on keys that begin with a prefix: some that come again and again, and new ones. */
export interface TrafficRun {
  readonly prefix: string
  readonly keys: number
  readonly callers: number
  readonly limit: number
  readonly windowSeconds: number
  /** Units taken ahead. */
  readonly lease?: number | undefined
}

/** What the traffic saw. Times are milliseconds since the epoch. */
export interface TrafficReport {
  readonly decisions: number
  /** Admitted hits by key, and how often the store's failure decided about one. */
  readonly admitted: Record<string, number>
  readonly degraded: Record<string, number>
  /** How often the store failed, by the code of its error. */
  readonly codes: Record<string, number>
  /** Every denial that the store decided. */
  readonly denials: Denial[]
  /** When the store decided batches. */
  readonly served: number[]
  /** When hits were answered that the store's failure decided about, and the code of its error. */
  readonly failed: { readonly at: number; readonly code: string }[]
  /** The most sockets that were open at a time. */
  readonly sockets: number
  /** Decisions that came later than the deadline and 50 ms allow, in words. */
  readonly late: string[]
}

export type ToTraffic = { readonly run: TrafficRun } | 'stop' | 'end'
export type FromTraffic = 'ready' | 'started' | { readonly report: TrafficReport }

/** What a decision may take beyond its deadline, in milliseconds. */
const ALLOWED_MS = 50
/** One hit of so many is on a key of its own. */
const NEW_KEY_EVERY = 8
/** One hit of so many is followed by a look at its key. */
const PEEK_EVERY = 5
/** How often the store is swept, in milliseconds: what hangs on its second connection must be in nobody's way. */
const SWEEP_MS = 100
/** How often it is looked whether this process stands still, and between two hits of a caller. In milliseconds. */
const BEAT_MS = 10

const { store: place, timeoutMs } = JSON.parse(process.argv[2] as string) as TrafficSetting

function openStore(): Store {
  if ('filename' in place) return new SqliteStore({ ...place, sweepSeconds: false })
  if ('uri' in place) return new MysqlStore({ ...place, sweepSeconds: false })
  const isEnded = 'endedPool' in place
  const pool = createPool({ uri: isEnded ? place.endedPool : place.pool, connectionLimit: 2 })
  const store = new MysqlStore({ pool, sweepSeconds: false })
  const end = (): Promise<void> => new Promise((resolve) => pool.end(() => resolve()))
  if (isEnded) void end()
  else afterwards = end
  return store
}

/** What is to be closed after the store. */
let afterwards = async (): Promise<void> => {}

const inner = openStore()

function begin({
  prefix,
  keys,
  callers,
  limit,
  windowSeconds,
  lease,
}: TrafficRun): () => Promise<TrafficReport> {
  const denials: Denial[] = []
  const served: number[] = []
  const failed: { at: number; code: string }[] = []
  const admitted: Record<string, number> = {}
  const degraded: Record<string, number> = {}
  const codes: Record<string, number> = {}
  const slow: { begin: number; ms: number; key: string; outcome: string }[] = []
  const stalls: { end: number; ms: number }[] = []
  const add = (counts: Record<string, number>, name: string): void => {
    counts[name] = (counts[name] ?? 0) + 1
  }

  const recorded = recordDenials(inner, denials)
  const store: Store = {
    ...recorded,
    async decide(batch, signal) {
      const verdicts = await recorded.decide(batch, signal)
      served.push(Date.now())
      return verdicts
    },
  }
  // Everything is kept, so that the history can be checked.
  const limiter = new Limiter({
    store,
    name: 't',
    limit,
    windowSeconds,
    retainSeconds: 3600,
    timeoutMs,
    lease,
    logger: { error: () => {} },
  })

  let sockets = 0
  let last = performance.now()
  const heart = setInterval(() => {
    const now = performance.now()
    if (now - last > 2 * BEAT_MS) stalls.push({ end: now, ms: now - last - BEAT_MS })
    last = now
    const open = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap')
    sockets = Math.max(sockets, open.length)
  }, BEAT_MS)

  let decisions = 0
  let stopped = false
  const caller = async (): Promise<void> => {
    while (!stopped) {
      decisions += 1
      const isNew = decisions % NEW_KEY_EVERY === 0
      const key = isNew ? `${prefix} new ${process.pid} ${decisions}` : `${prefix} ${decisions % keys}`
      const begin = performance.now()
      const decision = await limiter.hit(key)
      const ms = performance.now() - begin
      if (decision.outcome === 'allowed') add(admitted, key)
      if (decision.outcome === 'degraded') {
        add(degraded, key)
        add(codes, decision.error.code)
        failed.push({ at: Date.now(), code: decision.error.code })
      }
      if (ms > timeoutMs + ALLOWED_MS) slow.push({ begin, ms, key, outcome: decision.outcome })
      if (decisions % PEEK_EVERY === 0) {
        const looked = performance.now()
        await limiter.peek(key)
        const took = performance.now() - looked
        if (took > timeoutMs + ALLOWED_MS) slow.push({ begin: looked, ms: took, key, outcome: 'seen' })
      }
      await new Promise((resolve) => setTimeout(resolve, BEAT_MS))
    }
  }
  let sweeping = false
  const sweeps = setInterval(async () => {
    if (sweeping) return
    sweeping = true
    await inner.sweep().catch(() => {})
    sweeping = false
  }, SWEEP_MS)
  const ended = Promise.all(Array.from({ length: callers }, caller))
  return async () => {
    stopped = true
    await ended
    clearInterval(heart)
    clearInterval(sweeps)
    // A process that stood still is late without the store's fault, and gives its hits the lost time back.
    const late = slow.filter(({ begin, ms }) => {
      const lost = stalls.filter(({ end, ms: length }) => end >= begin && end - length <= begin + ms)
      return ms > timeoutMs + ALLOWED_MS + 2 * lost.reduce((sum, stall) => sum + stall.ms, 0)
    })
    const words = late.map(({ ms, key, outcome }) => `${key} ${outcome} after ${Math.round(ms)} ms`)
    return { decisions, admitted, degraded, codes, denials, served, failed, sockets, late: words }
  }
}

const say = (message: FromTraffic): void => {
  process.send?.(message)
}

let stop: (() => Promise<TrafficReport>) | null = null
process.on('message', async (message: ToTraffic) => {
  if (message === 'end') {
    await stop?.()
    await inner.close()
    await afterwards()
    process.disconnect()
  } else if (message === 'stop') {
    const report = await stop?.()
    stop = null
    if (report !== undefined) say({ report })
  } else {
    // A test that failed has left it running.
    await stop?.()
    stop = begin(message.run)
    say('started')
  }
})
say('ready')
