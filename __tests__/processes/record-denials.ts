import type { Store } from '../../lib/stores/store.js'
import { type Recorder, recordDecisions } from './record-decisions.js'

/** A denial, and the instant of the database's clock at which it was decided, in microseconds. */
export interface Denial {
  readonly key: string
  readonly at: number
}

/** Writes every denial down that a store decides. */
export const denialRecorder = (denials: Denial[]): Recorder<number> => ({
  decided(batch, verdicts) {
    verdicts.forEach(({ readings }, i) => {
      readings.forEach(({ denied, at }, j) => {
        if (denied) denials.push({ key: batch.hits[i]?.charges[j]?.key as string, at })
      })
    })
  },
})

/** The same store, with every denial it decides written down. */
export const recordDenials = (store: Store, denials: Denial[]): Store =>
  recordDecisions(store, denialRecorder(denials))
