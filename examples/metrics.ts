import { metrics } from '@opentelemetry/api'
import { instrument, type Store } from 'express-sql-rate-limit'

/** Measures every limiter on this store, for as long as the process lives. */
export function measure(store: Store): void {
  instrument({ meter: metrics.getMeter('shop'), stores: { main: store } })
}
