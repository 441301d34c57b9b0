import { setImmediate } from 'node:timers/promises'

/** Callers that each wait for an answer before they hit again. */
export interface Load {
  readonly callers: number
  /** The key of the next hit. */
  readonly nextKey: () => string
  /** Ends after so many milliseconds, */
  readonly millis?: number
  /** or after so many hits. */
  readonly hits?: number
}

/** What came of a load. */
export interface Outcome {
  readonly hits: number
  /** From the first hit to the last answer. */
  readonly seconds: number
  readonly perSecond: number
  readonly allowed: number
  readonly denied: number
  /** Hits without a decision. */
  readonly errors: number
  /** The first of them. */
  readonly error?: string
  /** Of this process, per hit. */
  readonly cpuMicros: number
  /** Milliseconds from a hit to its answer. */
  readonly p50: number
  readonly p99: number
}

/** Latencies kept of a load: the last so many. A power of two. */
const SAMPLES = 1 << 17
/** Some contenders answer without a turn of the event loop: after so many hits the others get theirs. */
const HITS_A_TURN = 2048

/** Puts a load on a limiter. */
export async function drive(hit: (key: string) => Promise<boolean>, load: Load): Promise<Outcome> {
  const { callers, nextKey, millis = Number.POSITIVE_INFINITY, hits = Number.POSITIVE_INFINITY } = load
  const samples = new Float64Array(SAMPLES)
  let [made, allowed, denied, errors] = [0, 0, 0, 0]
  let error: string | undefined

  const call = async (): Promise<void> => {
    let sent = performance.now()
    while (sent < end && made < hits) {
      made += 1
      if (made % HITS_A_TURN === 0) {
        await setImmediate()
        sent = performance.now()
      }
      const slot = made & (SAMPLES - 1)
      try {
        if (await hit(nextKey())) allowed += 1
        else denied += 1
      } catch (thrown) {
        errors += 1
        error ??= String(thrown)
      }
      const answered = performance.now()
      samples[slot] = answered - sent
      sent = answered
    }
  }

  const cpu = process.cpuUsage()
  const begun = performance.now()
  const end = begun + millis
  await Promise.all(Array.from({ length: callers }, call))
  const seconds = (performance.now() - begun) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const sorted = made < SAMPLES ? samples.subarray(1, made + 1).sort() : samples.sort()
  return {
    hits: made,
    seconds,
    perSecond: made / seconds,
    allowed,
    denied,
    errors,
    ...(error === undefined ? {} : { error }),
    cpuMicros: (user + system) / made,
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  }
}
