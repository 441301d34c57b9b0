/* Compiled, never run: meters of OpenTelemetry are meters here, although the package does not depend on it. */
import { type Meter as ApiMeter, metrics } from '@opentelemetry/api'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { instrument, MemoryStore, type Meter } from 'express-sql-rate-limit'

const stores = { main: new MemoryStore() }

export const meter: Meter = metrics.getMeter('shop')
export const take: (api: ApiMeter) => Meter = (api) => api
export const stop: () => void = instrument({ meter: new MeterProvider().getMeter('shop'), stores })

// @ts-expect-error a store has a name
instrument({ meter, stores: [new MemoryStore()] })
// @ts-expect-error a meter is handed in
instrument({ stores })
