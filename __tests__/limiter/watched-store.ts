import {
  type Batch,
  type Charge,
  MemoryStore,
  type Reading,
  type Refund,
  type Store,
  StoreError,
  type SweepResult,
  type Verdict,
} from 'express-sql-rate-limit'

/** A real store behind glass: what it is asked is recorded, and each call can be held up or made to fail. */
export class WatchedStore implements Store {
  readonly batches: Batch[] = []
  readonly signals: AbortSignal[] = []
  probes = 0
  /** The keys of probes that ask about some. */
  readonly tested: (readonly string[])[] = []
  /** Runs before the store decides or reads; it throws, rejects or waits for the outside world. */
  before: () => unknown = () => {}
  /** Runs after the store has decided, before the answer arrives. */
  after: () => unknown = () => {}
  readonly #inner: Store

  constructor(inner: Store = new MemoryStore({ sweepSeconds: false })) {
    this.#inner = inner
  }

  // Not async, so that what `before` throws is thrown and not rejected.
  decide(batch: Batch, signal: AbortSignal): Promise<Verdict[]> {
    this.batches.push(batch)
    this.signals.push(signal)
    return this.#between(this.before(), () => this.#inner.decide(batch, signal))
  }

  peek(charges: readonly Charge[], signal: AbortSignal): Promise<Reading[]> {
    return this.#between(this.before(), () => this.#inner.peek(charges, signal))
  }

  refund(refunds: readonly Refund[], signal: AbortSignal): Promise<readonly Refund[]> {
    return this.#between(this.before(), () => this.#inner.refund(refunds, signal))
  }

  block(charge: Charge, micros: number, signal: AbortSignal): Promise<void> {
    return this.#between(this.before(), () => this.#inner.block(charge, micros, signal))
  }

  reset(keys: readonly string[]): Promise<void> {
    return this.#between(this.before(), () => this.#inner.reset(keys))
  }

  probe(signal: AbortSignal, keys?: readonly string[]): Promise<void> {
    if (keys === undefined) this.probes += 1
    else this.tested.push(keys)
    return this.#between(this.before(), () => this.#inner.probe(signal, keys))
  }

  install(): Promise<void> {
    return this.#inner.install()
  }

  sweep(): Promise<SweepResult> {
    return this.#inner.sweep()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async #between<T>(before: unknown, act: () => Promise<T>): Promise<T> {
    await before
    const result = await act()
    await this.after()
    return result
  }
}

/** Something to wait for that the test opens. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** What must never reach a client. */
export const SECRETS = /SELECT|rate_keys|ECONNREFUSED|10\.1\.2\.3|3306|s3cret/

const driverError = () => new Error("SELECT total FROM rate_keys: Access denied for 'app' using s3cret")

/** The ways in which a store fails, as `before` of a watched store. */
export const failures: [string, () => unknown][] = [
  [
    'rejects with a StoreError',
    async () => {
      throw new StoreError('ERR_STORE_CONNECTION', 'connect ECONNREFUSED 10.1.2.3:3306', {
        cause: driverError(),
      })
    },
  ],
  [
    'rejects with any Error',
    async () => {
      throw driverError()
    },
  ],
  ['rejects with undefined', () => Promise.reject(undefined)],
  [
    'throws synchronously',
    () => {
      throw driverError()
    },
  ],
  ['never settles', () => new Promise(() => {})],
]
