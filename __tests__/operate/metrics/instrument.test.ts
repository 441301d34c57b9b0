import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  type InstrumentOptions,
  instrument,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  type Store,
} from 'express-sql-rate-limit'
import { passTime, stopTime } from '../../limiter/moving-time.js'
import { failures, WatchedStore } from '../../limiter/watched-store.js'

/** What OpenTelemetry's own SDK makes of it. */
function setUp(stores: Record<string, Store>) {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 86_400_000 })
  const provider = new MeterProvider({ readers: [reader] })
  const stop = instrument({ meter: provider.getMeter('test'), stores })
  const collect = async (): Promise<Map<string, MetricData>> => {
    await reader.forceFlush()
    const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? []
    return new Map(scopes.flatMap(({ metrics }) => metrics).map((data) => [data.descriptor.name, data]))
  }
  /** Values by attributes; of a histogram how many there were. */
  const valuesOf = async (name: string): Promise<Record<string, number>> => {
    const points = (await collect()).get(name)?.dataPoints ?? []
    return Object.fromEntries(
      points.map(({ attributes, value }) => [
        Object.values(attributes).join(' '),
        typeof value === 'number' ? value : value.count,
      ]),
    )
  }
  closers.push(async () => {
    stop()
    await provider.shutdown()
  })
  return { stop, collect, valuesOf }
}

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const create = (store: Store, options: Partial<LimiterOptions> = {}) =>
  new Limiter({ store, name: 'api', limit: 2, windowSeconds: 60, logger: { error() {} }, ...options })

const down = (): WatchedStore => {
  const store = new WatchedStore()
  store.before = failures[0]?.[1] as () => unknown
  return store
}

test('counts decisions by limiter and outcome, those from memory too', async () => {
  const store = new MemoryStore()
  const { valuesOf } = setUp({ main: store })
  const [api, login] = [create(store), create(store, { name: 'login', limit: 1 })]
  for (let i = 0; i < 5; i += 1) await api.hit('a')
  for (let i = 0; i < 3; i += 1) await login.hit('b')
  expect(await valuesOf('rate_limit.decisions')).toEqual({
    'main allowed api': 2,
    'main denied api': 3,
    'main allowed login': 1,
    'main denied login': 2,
  })
})

test('counts decisions that the store did not make by the code of its error, and its errors', async () => {
  const store = down()
  const { valuesOf } = setUp({ main: store })
  for (let i = 0; i < 3; i += 1) await create(store).hit('a')
  expect(await valuesOf('rate_limit.decisions')).toEqual({ 'main degraded ERR_STORE_CONNECTION api': 3 })
  expect(await valuesOf('rate_limit.store.errors')).toEqual({ 'main ERR_STORE_CONNECTION': 3 })
})

test('measures how long decisions and batches take, in seconds', async () => {
  const store = new WatchedStore()
  store.before = () => new Promise((resolve) => setTimeout(resolve, 30))
  const { collect } = setUp({ main: store })
  await create(store).hit('a')
  const metrics = await collect()
  for (const name of ['rate_limit.decision.duration', 'rate_limit.batch.duration']) {
    const data = metrics.get(name)
    expect(data?.descriptor.unit).toBe('s')
    const value = data?.dataPoints[0]?.value as { sum: number; count: number }
    expect(value.count).toBe(1)
    expect(value.sum).toBeGreaterThan(0.025)
    expect(value.sum).toBeLessThan(10)
  }
})

test('measures how many hits one transaction takes', async () => {
  const store = new MemoryStore()
  const { collect } = setUp({ main: store })
  const limiter = create(store, { limit: 1000 })
  await Promise.all(Array.from({ length: 40 }, (_, i) => limiter.hit(`key ${i}`)))
  const value = (await collect()).get('rate_limit.batch.size')?.dataPoints[0]?.value as {
    sum: number
    max: number
  }
  expect(value.sum).toBe(40)
  expect(value.max).toBeGreaterThan(1)
})

test('shows the state of the breaker, and how many hits wait', async () => {
  stopTime()
  const store = down()
  const { valuesOf } = setUp({ main: store })
  const limiter = create(store)
  expect(await valuesOf('rate_limit.store.state')).toEqual({
    'main closed': 1,
    'main half-open': 0,
    'main open': 0,
  })
  for (let i = 0; i < 3; i += 1) {
    await limiter.hit('a')
    passTime(300)
  }
  await limiter.hit('a')
  expect(await valuesOf('rate_limit.store.state')).toEqual({
    'main closed': 0,
    'main half-open': 0,
    'main open': 1,
  })
  expect(await valuesOf('rate_limit.store.pending')).toEqual({ main: 0 })
  await store.close()
})

test('counts the rows that sweeps remove', async () => {
  let now = Date.now()
  const store = new MemoryStore({ sweepSeconds: false, clock: () => now })
  const { valuesOf } = setUp({ main: store })
  const limiter = create(store)
  for (const key of ['a', 'a', 'b']) await limiter.hit(key)
  now += 3_600_000
  await store.sweep()
  // Two keys and three events.
  expect(await valuesOf('rate_limit.sweep.rows')).toEqual({ main: 5 })
})

test('tells stores apart, and measures no others', async () => {
  const [one, two, other] = [new MemoryStore(), new MemoryStore(), new MemoryStore()]
  const { valuesOf } = setUp({ one, two })
  for (const store of [one, two, two, other]) await create(store).hit('a')
  expect(await valuesOf('rate_limit.decisions')).toEqual({ 'one allowed api': 1, 'two allowed api': 2 })
  expect(Object.keys(await valuesOf('rate_limit.store.state'))).toHaveLength(6)
})

test('has no key in any of them', async () => {
  const store = new MemoryStore()
  const { collect } = setUp({ main: store })
  const limiter = create(store)
  for (let i = 0; i < 5; i += 1) await limiter.hit('203.0.113.9')
  const told = JSON.stringify([...(await collect()).values()])
  expect(told).toContain('rate_limit.decisions')
  expect(told).not.toContain('203.0.113.9')
})

test('names and units are those of the conventions of OpenTelemetry', async () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const { collect } = setUp({ main: store })
  await create(store).hit('a')
  await store.sweep()
  const units = [...(await collect()).values()].map(({ descriptor: { name, unit } }) => [name, unit])
  expect(units.length).toBeGreaterThan(5)
  for (const [name, unit] of units) {
    expect(name).toMatch(/^rate_limit(\.[a-z]+){1,2}$/)
    expect(unit).toMatch(/^(1|s|\{[a-z]+\})$/)
  }
})

test('measures nothing once it is stopped', async () => {
  const store = new MemoryStore()
  const { stop, valuesOf } = setUp({ main: store })
  const limiter = create(store)
  await limiter.hit('a')
  stop()
  await limiter.hit('a')
  expect(await valuesOf('rate_limit.decisions')).toEqual({ 'main allowed api': 1 })
  expect(await valuesOf('rate_limit.store.pending')).toEqual({})
})

test.each<[string, unknown]>([
  ['no options', undefined],
  ['no meter', { stores: { main: new MemoryStore() } }],
  ['something else for a meter', { meter: {}, stores: { main: new MemoryStore() } }],
  ['no stores', { meter: new MeterProvider().getMeter('test') }],
  ['none of any name', { meter: new MeterProvider().getMeter('test'), stores: {} }],
  ['stores without names', { meter: new MeterProvider().getMeter('test'), stores: [new MemoryStore()] }],
  ['something else for a store', { meter: new MeterProvider().getMeter('test'), stores: { main: {} } }],
  [
    'an unknown option',
    { meter: new MeterProvider().getMeter('test'), stores: { main: new MemoryStore() }, limiters: [] },
  ],
])('refuses %s', (_, options) => {
  expect(() => instrument(options as InstrumentOptions)).toThrow(TypeError)
})
