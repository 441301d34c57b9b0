import { Limiter, MysqlStore, SqliteStore } from '../../lib/index.js'
import { type Recorder, recordDecisions } from './record-decisions.js'
import { HOT_KEY } from './traffic.js'

/** Where a process counts, and what. */
export interface Setting {
  readonly store:
    | { readonly uri: string; readonly multipleStatements?: boolean }
    | { readonly filename: string }
  /** Of the limiter. Default `w`. */
  readonly name?: string
  readonly limit: number
  /** The hot key's own limit, under a limiter whose name ends in `-hot`. Default: that of the others, and with them. */
  readonly hotLimit?: number
  readonly windowSeconds: number
  readonly retainSeconds?: number
  /** Default 20,000: what is tested is not the deadline. */
  readonly timeoutMs?: number
  readonly lease?: number
  /** Default: no sweeps. */
  readonly sweepSeconds?: number
  /** A file that the process writes everything into that its store is asked and says, so that killing it loses nothing. */
  readonly journal?: string
  /** The limiter that people write by hand in place of ours: for the test that a wrong one is found. */
  readonly byHand?: boolean
}

/** What became of a hit. */
export type Answer =
  | { readonly outcome: 'admitted'; refund(): Promise<unknown> }
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'undecided'; readonly code: string }

/** What a process hits. */
export interface Subject {
  hit(key: string): Promise<Answer>
  reset(key: string): Promise<void>
  close(): Promise<void>
}

/** Ready to be hit: the schema is there. */
export const openSubject = <Question>(setting: Setting, recorder: Recorder<Question>): Promise<Subject> =>
  setting.byHand ? openByHand(setting) : openOurs(setting, recorder)

async function openOurs<Question>(setting: Setting, recorder: Recorder<Question>): Promise<Subject> {
  const { store: place, name = 'w', limit, hotLimit, windowSeconds, lease } = setting
  const { retainSeconds = 0, timeoutMs = 20_000, sweepSeconds = false } = setting
  const inner =
    'uri' in place ? new MysqlStore({ ...place, sweepSeconds }) : new SqliteStore({ ...place, sweepSeconds })
  const store = recordDecisions(inner, recorder)
  await store.install()
  const logger = { error: () => {} }
  const options = { ...{ store, name, limit, windowSeconds, retainSeconds, timeoutMs, lease }, logger }
  const limiter = new Limiter(options)
  const hot =
    hotLimit === undefined ? limiter : new Limiter({ ...options, name: `${name}-hot`, limit: hotLimit })
  const limiterOf = (key: string): Limiter => (key === HOT_KEY ? hot : limiter)
  return {
    async hit(key) {
      const decision = await limiterOf(key).hit(key)
      if (decision.outcome === 'degraded') return { outcome: 'undecided', code: decision.error.code }
      if (decision.outcome === 'denied') return { outcome: 'refused' }
      return { outcome: 'admitted', refund: () => limiterOf(key).refund(decision) }
    },
    reset: (key) => limiterOf(key).reset(key),
    close: () => store.close(),
  }
}

async function openByHand({ store: place, name = 'w', limit, windowSeconds }: Setting): Promise<Subject> {
  if (!('uri' in place)) throw new TypeError('what people write by hand is for MySQL')
  const { threeStatements } = await import('../../bench/contenders/three-statements.js')
  const instance = await threeStatements('mysql').open(place.uri, { limit, windowSeconds })
  const cannot = async (): Promise<never> => {
    throw new TypeError('it gives nothing back')
  }
  return {
    hit: (key) =>
      instance.hit(`${name}:${key}`).then(
        (admitted): Answer => (admitted ? { outcome: 'admitted', refund: cannot } : { outcome: 'refused' }),
        () => ({ outcome: 'undecided', code: 'ERR_STORE_FAILED' }),
      ),
    reset: cannot,
    close: () => instance.close(),
  }
}
