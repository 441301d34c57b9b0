import type { LimitState } from '../../limiter/decision.js'
import type { Limiter } from '../../limiter/limiter.js'
import type { Key } from '../../limiter/storage-key.js'
import { optionError } from '../../stores/option-error.js'
import type { CalendarUnit, Policy, Store } from '../../stores/store.js'
import type { StoreError } from '../../stores/store-error.js'

/** What the dashboard asks of a limiter: a `rateLimit` middleware has it, and a `Limiter`. */
export type DashboardLimiter = Pick<Limiter, 'peek' | 'reset' | 'block' | 'store'> & {
  readonly policy?: Policy
  readonly policies?: readonly Policy[]
}

/** The rules of one limit, as people read them. */
export interface Rule extends Pick<Policy, 'limit' | 'windowSeconds' | 'algorithm'> {
  /** What a window of the calendar is, null where windows are of one length. */
  readonly every: CalendarUnit | null
}

/**
 * The limits of some limiters, by name: what is shown, looked up, reset and blocked. Those of a middleware of which one
 * depends on the request are not among them: a key alone does not tell what it is counted under.
 */
export class ManagedLimits {
  readonly #limiters = new Map<string, { rules: Rule[]; owners: Set<DashboardLimiter> }>()

  /** @throws TypeError unless all of them are limiters that count in this store. */
  constructor(limiters: unknown, store: Store) {
    const rule = 'an array of limiters that count in `store`'
    if (!Array.isArray(limiters)) throw optionError('limiters', rule, limiters)
    for (const limiter of limiters) {
      if (!isLimiter(limiter) || limiter.store !== store) throw optionError('limiters', rule, limiter)
      const policies = limiter.policies ?? [limiter.policy as Policy]
      for (const { name, limit, windowSeconds, algorithm, calendar } of policies) {
        const entry = this.#limiters.get(name) ?? { rules: [], owners: new Set() }
        entry.rules.push({ limit, windowSeconds, algorithm, every: calendar?.every ?? null })
        entry.owners.add(limiter)
        this.#limiters.set(name, entry)
      }
    }
  }

  get names(): string[] {
    return [...this.#limiters.keys()]
  }

  has(name: string): boolean {
    return this.#limiters.has(name)
  }

  rulesOf(name: string): readonly Rule[] {
    return this.#limiters.get(name)?.rules ?? []
  }

  /**
   * How full a limit is for a key: of the limits and the keys that may be meant, the fullest.
   *
   * @throws StoreError when the store fails.
   */
  async peek(name: string, text: string): Promise<LimitState | null> {
    const states: LimitState[] = []
    for (const { owner, key } of this.#meant(name, text)) {
      const decision = await owner.peek(key)
      if (decision.outcome === 'degraded') throw decision.error satisfies StoreError
      states.push(...decision.limits.filter(({ policy }) => policy === name))
    }
    const urgency = ({ denied, used, limit }: LimitState): number => (denied ? 2 : 0) + used / (limit + 1)
    return states.sort((a, b) => urgency(b) - urgency(a))[0] ?? null
  }

  /** @throws StoreError when the store fails. */
  async reset(name: string, text: string): Promise<void> {
    for (const { owner, key } of this.#meant(name, text)) await owner.reset(key)
  }

  /** @throws TypeError for wrong seconds; StoreError when the store fails. */
  async block(name: string, text: string, seconds: number): Promise<void> {
    for (const { owner, key } of this.#meant(name, text)) await owner.block(key, seconds)
  }

  #meant(name: string, text: string): { owner: DashboardLimiter; key: Key }[] {
    const owners = [...(this.#limiters.get(name)?.owners ?? [])]
    return owners.flatMap((owner) => keysOf(text).map((key) => ({ owner, key })))
  }
}

/** A key of several parts is shown as JSON, and a text may look like that: then both are meant. */
function keysOf(text: string): Key[] {
  if (!text.startsWith('["')) return [text]
  try {
    const parts: unknown = JSON.parse(text)
    const areTexts = Array.isArray(parts) && parts.every((part) => typeof part === 'string')
    return areTexts ? [text, parts] : [text]
  } catch {
    return [text]
  }
}

const isLimiter = (value: unknown): value is DashboardLimiter => {
  const { peek, reset, block, policy, policies } = (value ?? {}) as Partial<DashboardLimiter>
  const methods = [peek, reset, block]
  return (
    methods.every((method) => typeof method === 'function') &&
    (Array.isArray(policies) || typeof policy === 'object')
  )
}
