import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { BreakerState } from '../../limiter/breaker.js'
import type { BatchMessage, DecisionMessage } from '../../limiter/channels.js'
import { Lane } from '../../limiter/lane.js'
import { checkOptionNames, optionError } from '../../stores/option-error.js'
import type { SweepMessage } from '../../stores/publish-sweep.js'
import type { Store } from '../../stores/store.js'
import type { Meter, MetricCallback } from './meter.js'

export interface InstrumentOptions {
  /** A meter of @opentelemetry/api 1.3 or later: `metrics.getMeter('your-service')`. */
  readonly meter: Meter
  /** The stores whose limiters are measured, each under the name by which its measurements are told apart. */
  readonly stores: Readonly<Record<string, Store>>
}

const STATES: readonly BreakerState[] = ['closed', 'half-open', 'open']

/** From what memory takes to what `timeoutMs` allows, in seconds. */
const SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const HITS = [1, 2, 5, 10, 25, 50, 100, 250, 500]

/**
 * Measures limiters with OpenTelemetry: decisions by limiter and outcome and how long they take, batches, failures by
 * code, the state of the breaker, and what sweeps remove. docs/metrics.md lists all instruments. Keys are in none of
 * them.
 *
 * Returns a function that ends it. Measuring once is enough for any number of limiters; a second time counts all twice.
 *
 * @example
 * import { metrics } from '@opentelemetry/api'
 * const stop = instrument({ meter: metrics.getMeter('shop'), stores: { main: store } })
 *
 * @throws TypeError for a wrong or unknown option.
 */
export function instrument(options: InstrumentOptions): () => void {
  checkOptionNames('instrument', options, ['meter', 'stores'])
  const { meter, stores } = options
  if (typeof meter?.createObservableGauge !== 'function')
    throw optionError('meter', 'a Meter of @opentelemetry/api', meter)
  const names = namesOf(stores)

  const decisions = meter.createCounter('rate_limit.decisions', {
    description: 'Decisions of rate limiters.',
    unit: '{decision}',
  })
  const decisionDuration = meter.createHistogram('rate_limit.decision.duration', {
    description: 'How long a decision took, from memory or with the store.',
    unit: 's',
    advice: { explicitBucketBoundaries: SECONDS },
  })
  const batchSize = meter.createHistogram('rate_limit.batch.size', {
    description: 'Hits that the store decided in one transaction.',
    unit: '{hit}',
    advice: { explicitBucketBoundaries: HITS },
  })
  const batchDuration = meter.createHistogram('rate_limit.batch.duration', {
    description: 'How long the store took for one transaction.',
    unit: 's',
    advice: { explicitBucketBoundaries: SECONDS },
  })
  const storeErrors = meter.createCounter('rate_limit.store.errors', {
    description: 'Transactions of hits that the store failed to decide.',
    unit: '{error}',
  })
  const sweptRows = meter.createCounter('rate_limit.sweep.rows', {
    description: 'Rows of abandoned keys that sweeps of this process removed.',
    unit: '{row}',
  })
  const state = meter.createObservableGauge('rate_limit.store.state', {
    description: 'Whether the store is asked: 1 for the state of its breaker, 0 for the other states.',
    unit: '1',
  })
  const pending = meter.createObservableGauge('rate_limit.store.pending', {
    description: 'Hits that wait for the store.',
    unit: '{hit}',
  })

  /** Listens to a channel as far as it tells of these stores. */
  const listen = <Message extends { readonly store: Store }>(
    channel: string,
    measure: (message: Message, attributes: { 'rate_limit.store': string }) => void,
  ): (() => void) => {
    const listener = (message: unknown): void => {
      const name = names.get((message as Message).store)
      if (name !== undefined) measure(message as Message, { 'rate_limit.store': name })
    }
    subscribe(channel, listener)
    return () => unsubscribe(channel, listener)
  }
  const stops = [
    listen<DecisionMessage>('express-sql-rate-limit:decision', ({ decision, milliseconds }, attributes) => {
      const { policy, outcome } = decision
      const of = { ...attributes, 'rate_limit.outcome': outcome }
      const type = outcome === 'degraded' ? { 'error.type': decision.error.code } : {}
      decisions.add(1, { ...of, ...type, 'rate_limit.policy': policy })
      decisionDuration.record(milliseconds / 1000, of)
    }),
    listen<BatchMessage>('express-sql-rate-limit:batch', ({ hits, milliseconds, error }, attributes) => {
      const type = error === null ? {} : { 'error.type': error }
      if (hits > 0) batchSize.record(hits, attributes)
      batchDuration.record(milliseconds / 1000, { ...attributes, ...type })
      if (error !== null) storeErrors.add(1, { ...attributes, ...type })
    }),
    listen<SweepMessage>('express-sql-rate-limit:sweep', ({ rows }, attributes) => {
      sweptRows.add(rows, attributes)
    }),
  ]

  const observeState: MetricCallback = (result) => {
    for (const [store, name] of names) {
      const now = Lane.of(store).storeHealth.state
      for (const each of STATES) {
        const attributes = { 'rate_limit.store': name, 'rate_limit.store.state': each }
        result.observe(each === now ? 1 : 0, attributes)
      }
    }
  }
  const observePending: MetricCallback = (result) => {
    for (const [store, name] of names) {
      result.observe(Lane.of(store).storeHealth.pending, { 'rate_limit.store': name })
    }
  }
  state.addCallback(observeState)
  pending.addCallback(observePending)

  return () => {
    for (const stop of stops) stop()
    state.removeCallback(observeState)
    pending.removeCallback(observePending)
  }
}

/** @throws TypeError unless they are stores by name. */
function namesOf(stores: unknown): Map<Store, string> {
  const isRecord = typeof stores === 'object' && stores !== null && !Array.isArray(stores)
  const entries = isRecord ? Object.entries(stores) : []
  if (entries.length === 0 || !entries.every(([, store]) => typeof store?.decide === 'function')) {
    throw optionError('stores', 'an object of stores by name', stores)
  }
  return new Map(entries.map(([name, store]) => [store, name]))
}
