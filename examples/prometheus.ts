import { subscribe } from 'node:diagnostics_channel'
import express, { type Express } from 'express'
import {
  type BatchMessage,
  type BreakerMessage,
  type DecisionMessage,
  rateLimit,
  type Store,
  type SweepMessage,
} from 'express-sql-rate-limit'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/**
 * Measures every limiter on a store. Labels are limiters, outcomes and codes: few, and known beforehand. Never label by
 * key: a client makes as many of those as he likes.
 */
export function measureRateLimits(register: Registry, store: Store): void {
  const registers = [register]
  const decisions = new Counter({
    name: 'rate_limit_decisions_total',
    help: 'Decisions of rate limiters.',
    labelNames: ['policy', 'outcome'],
    registers,
  })
  const decisionSeconds = new Histogram({
    name: 'rate_limit_decision_duration_seconds',
    help: 'How long a decision took, from memory or with the store.',
    labelNames: ['outcome'],
    buckets: [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers,
  })
  const batchSize = new Histogram({
    name: 'rate_limit_batch_size_hits',
    help: 'Hits that the store decided in one transaction.',
    buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500],
    registers,
  })
  const storeErrors = new Counter({
    name: 'rate_limit_store_errors_total',
    help: 'Transactions of hits that the store failed to decide.',
    labelNames: ['code'],
    registers,
  })
  const storeUp = new Gauge({
    name: 'rate_limit_store_up',
    help: '0 while the store is down and onStoreError decides, else 1.',
    registers,
  })
  const sweptRows = new Counter({
    name: 'rate_limit_swept_rows_total',
    help: 'Rows of abandoned keys that sweeps of this process removed.',
    registers,
  })
  storeUp.set(1)

  /** A process may have other stores; their messages come by the same channels. */
  const listen = <Message extends { readonly store: Store }>(
    name: string,
    measure: (message: Message) => void,
  ): void => {
    subscribe(`express-sql-rate-limit:${name}`, (message) => {
      if ((message as Message).store === store) measure(message as Message)
    })
  }
  listen<DecisionMessage>('decision', ({ decision: { policy, outcome }, milliseconds }) => {
    decisions.inc({ policy, outcome })
    decisionSeconds.observe({ outcome }, milliseconds / 1000)
  })
  listen<BatchMessage>('batch', ({ hits, error }) => {
    if (hits > 0) batchSize.observe(hits)
    if (error !== null) storeErrors.inc({ code: error })
  })
  listen<BreakerMessage>('breaker', ({ health }) => storeUp.set(health.state === 'open' ? 0 : 1))
  listen<SweepMessage>('sweep', ({ rows }) => sweptRows.inc(rows))
}

/** An application that shows its measurements at `/metrics`; let only your Prometheus reach that. */
export function createMeasuredApp(store: Store, register: Registry): Express {
  measureRateLimits(register, store)
  const app = express()
  // Before the limiter: to be asked for measurements is not what they measure.
  app.get('/metrics', async (_req, res) => {
    res.type(register.contentType).send(await register.metrics())
  })
  app.use(rateLimit({ store, name: 'global', limit: 3, windowSeconds: 60 }))
  app.get('/', (_req, res) => {
    res.send('Hello!')
  })
  return app
}
