import { setTimeout as sleep } from 'node:timers/promises'
import { Limiter, MysqlStore, SqliteStore } from '../../lib/index.js'
import type { Use } from './check-history.js'
import { type Denial, recordDenials } from './record-denials.js'

/** Where a process counts, and what. */
export interface Setting {
  readonly store:
    | { readonly uri: string; readonly multipleStatements?: boolean }
    | { readonly filename: string }
  readonly limit: number
  readonly windowSeconds: number
  readonly retainSeconds?: number
  readonly timeoutMs?: number
  readonly lease?: number
}

/** One run: hits in turn on the keys `key first` to `key first+count−1`, beginning with any of them. */
export interface Run {
  readonly first: number
  readonly count: number
  readonly begin: number
  /** Ends after so many hits, */
  readonly hits: number
  /** or after so many milliseconds, when given. */
  readonly millis?: number
  readonly callers: number
  /** The longest that a caller waits between two hits, when given, in milliseconds. */
  readonly pauseMillis?: number
}

/** What one process saw. */
export interface Outcome {
  /** Admitted hits by key. */
  readonly admitted: Record<string, number>
  readonly denied: number
  readonly degraded: string[]
  readonly slowestMs: number
  /** Every denial that the store, not the memory, decided. */
  readonly denials: Denial[]
  /** When admitted hits were answered, in milliseconds since the epoch. */
  readonly admittedAt: number[]
  /** Of each hit that was admitted with a lease, on the machine's clock, in milliseconds. */
  readonly uses: Use[]
}

export type Message = { readonly ready: true } | { readonly outcome: Outcome }

async function main(): Promise<void> {
  const setting = JSON.parse(process.argv[2] as string) as Setting
  const { limit, windowSeconds, retainSeconds = 0, timeoutMs = 20_000, lease } = setting
  const inner = 'uri' in setting.store ? new MysqlStore(setting.store) : new SqliteStore(setting.store)
  const denials: Denial[] = []
  const store = recordDenials(inner, denials)
  const limiter = new Limiter({ store, name: 'w', limit, windowSeconds, retainSeconds, timeoutMs, lease })

  async function run({
    first,
    count,
    begin,
    hits,
    millis = Number.POSITIVE_INFINITY,
    callers,
    pauseMillis,
  }: Run): Promise<Outcome> {
    denials.length = 0
    const admitted: Record<string, number> = {}
    const admittedAt: number[] = []
    const degraded: string[] = []
    const uses: Use[] = []
    let denied = 0
    let slowestMs = 0
    let made = 0
    const end = performance.now() + millis
    const caller = async (): Promise<void> => {
      while (made < hits && performance.now() < end) {
        const key = `key ${first + ((begin + made) % count)}`
        made += 1
        const sent = performance.now()
        const asked = Date.now()
        const decision = await limiter.hit(key)
        // Both clocks are cut to milliseconds.
        const answered = Date.now() + 1
        slowestMs = Math.max(slowestMs, performance.now() - sent)
        if (decision.outcome === 'allowed') {
          admitted[key] = (admitted[key] ?? 0) + 1
          admittedAt.push(Date.now())
          if (lease !== undefined) uses.push({ asked, answered })
        } else if (decision.outcome === 'denied') {
          denied += 1
          // One from memory takes no turn of the event loop: let I/O in, as a server would.
          await new Promise(setImmediate)
        } else degraded.push(decision.error.code)
        if (pauseMillis !== undefined) await sleep(Math.random() * pauseMillis)
      }
    }
    await Promise.all(Array.from({ length: callers }, caller))
    return { admitted, denied, degraded, slowestMs, denials: [...denials], admittedAt, uses }
  }

  process.on('message', async (message: Run | 'end') => {
    if (message === 'end') {
      await store.close()
      process.disconnect()
    } else {
      process.send?.({ outcome: await run(message) } satisfies Message)
    }
  })
  // Installed before the start, so that all processes begin at once.
  await store.install()
  process.send?.({ ready: true } satisfies Message)
}

void main()
