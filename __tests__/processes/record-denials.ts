import type { Store } from '../../lib/stores/store.js'

/** A denial, and the instant of the database's clock at which it was decided, in microseconds. */
export interface Denial {
  readonly key: string
  readonly at: number
}

/** The same store, with every denial it decides written down. */
export function recordDenials(store: Store, denials: Denial[]): Store {
  return {
    install: () => store.install(),
    peek: (charges, signal) => store.peek(charges, signal),
    refund: (refunds, signal) => store.refund(refunds, signal),
    block: (charge, micros, signal) => store.block(charge, micros, signal),
    reset: (keys) => store.reset(keys),
    probe: (signal, keys) => store.probe(signal, keys),
    sweep: () => store.sweep(),
    close: () => store.close(),
    async decide(batch, signal) {
      const verdicts = await store.decide(batch, signal)
      verdicts.forEach(({ readings }, i) => {
        readings.forEach(({ denied, at }, j) => {
          if (denied) denials.push({ key: batch.hits[i]?.charges[j]?.key as string, at })
        })
      })
      return verdicts
    },
  }
}
