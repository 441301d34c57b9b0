import { Limiter, MysqlStore, SqliteStore } from 'express-sql-rate-limit'
import { drive } from '../load/drive.js'
import { answerParent } from '../processes/answer-parent.js'
import { keyOf } from './fill-keys.js'
import { AMPLE, WINDOW_SECONDS } from './subject.js'
import { admittedHit } from './time-hits.js'

/** What the process is asked: first to open its store, then to hit so many keys that it never hit before. */
export type MemoryQuestion =
  | { readonly store: { readonly uri: string } | { readonly filename: string } }
  | { readonly keys: number }

/** What the process holds, in bytes, after everything that can be freed was freed. */
export interface MemoryAnswer {
  readonly heap: number
  /** The whole of the process: heap, buffers and code, as the system counts it. */
  readonly resident: number
}

/** As many as one batch takes. */
const CALLERS = 500

const limiters: Limiter[] = []
let hit = 0

answerParent<MemoryQuestion, MemoryAnswer>(async (question) => {
  if ('store' in question) {
    const { store: place } = question
    const store =
      'uri' in place
        ? new MysqlStore({ uri: place.uri, sweepSeconds: false })
        : new SqliteStore({ filename: place.filename, sweepSeconds: false })
    await store.install()
    limiters.push(
      new Limiter({
        store,
        name: 'memory',
        limit: AMPLE,
        windowSeconds: WINDOW_SECONDS,
        timeoutMs: 60_000,
      }),
    )
    return memory()
  }
  const [limiter] = limiters
  if (limiter === undefined) throw new Error('no store was opened')
  const load = { callers: CALLERS, nextKey: () => keyOf(hit++), hits: question.keys }
  const { error } = await drive(admittedHit(limiter), load)
  if (error !== undefined) throw new Error(error)
  return memory()
})

/** Needs `--expose-gc`. Collects until nothing more is found: finalisers free some of it a turn later. */
async function memory(): Promise<MemoryAnswer> {
  for (let i = 0; i < 5; i += 1) {
    gc?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed, resident: rss }
}
