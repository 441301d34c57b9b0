import { metrics } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { Limiter, MemoryStore } from 'express-sql-rate-limit'
import { measure } from '../../examples/metrics.js'

test('examples/metrics.ts: what limiters do is exported by the SDK that the application has set up', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 86_400_000 })
  const provider = new MeterProvider({ readers: [reader] })
  metrics.setGlobalMeterProvider(provider)
  const store = new MemoryStore()
  measure(store)
  await new Limiter({ store, name: 'api', limit: 1, windowSeconds: 60 }).hit('a')
  await reader.forceFlush()
  const [scope] = exporter.getMetrics().at(-1)?.scopeMetrics ?? []
  expect(scope?.scope.name).toBe('shop')
  expect(scope?.metrics.map(({ descriptor }) => descriptor.name)).toContain('rate_limit.decisions')
  await provider.shutdown()
  metrics.disable()
})
