import { get } from 'node:http'
import { createGunzip } from 'node:zlib'
import compression from 'compression'
import { MemoryStore, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { expressVersions, portOf, serve } from '../../http/serve.js'
import { failures, WatchedStore } from '../../limiter/watched-store.js'
import { mount } from './mount.js'
import { type Watch, watch } from './watch.js'

const quiet = { error() {} }
const watches: Watch[] = []
const look = async (...parameters: Parameters<typeof watch>): Promise<Watch> => {
  const made = await watch(...parameters)
  watches.push(made)
  return made
}

afterEach(() => {
  for (const each of watches.splice(0)) each.leave()
})

/** Timers of the process that may still fire. */
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

describe.each(expressVersions)('on Express %s', (_, express) => {
  const serveMounted = async (options: Parameters<typeof mount>[0] = {}) => {
    const mounted = mount(options, express)
    return { ...mounted, server: await serve(mounted.app as never) }
  }

  test('tells all of it to one who comes: what was decided before, too', async () => {
    const { server, ping } = await serveMounted()
    for (let i = 0; i < 5; i += 1) await ping.hit('anna')
    // The second that is under way is told when it is over.
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const { response, until } = await look(server)
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    const { limits, store, end, now } = await until('snapshot')
    expect(Math.abs(now / 1000 - end)).toBeLessThan(3)
    expect(limits.map(({ name }: { name: string }) => name)).toEqual(['ping', 'login'])
    const [first, second] = limits
    expect(first).toMatchObject({
      managed: true,
      rules: [{ limit: 3, windowSeconds: 60, algorithm: 'sliding-window' }],
      busiest: [{ key: 'anna', cut: false, hits: 5, denied: 2, fill: { used: 3, limit: 3 } }],
      mostDenied: [{ key: 'anna', hits: 2, denied: 2 }],
    })
    expect(first.counts).toHaveLength(2700)
    const sum = (outcome: number): number =>
      first.counts.reduce(
        (all: number, count: number, i: number) => (i % 3 === outcome ? all + count : all),
        0,
      )
    expect([sum(0), sum(1), sum(2)]).toEqual([3, 2, 0])
    expect(second.busiest).toEqual([])
    expect(store).toMatchObject({
      kind: 'MemoryStore',
      health: { state: 'closed', pending: 0 },
      batches: {
        batches: 4,
        failed: 0,
        mostHits: 1,
        meanHits: 1,
        p50: expect.any(Number),
        p99: expect.any(Number),
      },
    })
  })

  test('tells each second what is new', async () => {
    const { server, ping } = await serveMounted()
    const { until } = await look(server)
    await until('snapshot')
    for (let i = 0; i < 4; i += 1) await ping.hit('anna')
    const [allowed, denied] = [0, 1].map(
      (outcome) =>
        ({ data }: { data: { counts: number[][] } }) =>
          (data.counts[0] ?? []).reduce((all, count, i) => (i % 3 === outcome ? all + count : all), 0),
    )
    const seen = await until('tick', (data) => (denied?.({ data }) ?? 0) > 0)
    expect([allowed?.({ data: seen }), denied?.({ data: seen })]).toEqual([3, 1])
    const { lists } = await until('tick', (data) => data.lists[0] !== null)
    expect(lists[0].mostDenied[0]).toMatchObject({ key: 'anna', denied: 1 })
    const later = await until('tick', (data) => data.end > seen.end)
    expect(later.counts[1]).toEqual(expect.arrayContaining([0, 0, 0]))
  })

  test('ticks when nothing happens, as a heartbeat', async () => {
    const { server } = await serveMounted()
    const { until } = await look(server)
    const first = await until('tick')
    const second = await until('tick', ({ now }) => now > first.now)
    expect(second.now - first.now).toBeGreaterThan(500)
  })

  test('shows what other limiters decide in the store, by their names, and not those of another store', async () => {
    const { server, store } = await serveMounted()
    const { until } = await look(server)
    await until('snapshot')
    const names = rateLimit({ store, name: 'seen', limit: 1, windowSeconds: 60, logger: quiet })
    const elsewhere = new MemoryStore({ sweepSeconds: false })
    const hidden = rateLimit({
      store: elsewhere,
      name: 'elsewhere',
      limit: 1,
      windowSeconds: 60,
      logger: quiet,
    })
    await names.hit('anna')
    await hidden.hit('anna')
    const { limits } = await until('snapshot', (data) => data.limits.length > 2)
    expect(limits.map(({ name, managed }: { name: string; managed: boolean }) => [name, managed])).toEqual([
      ['ping', true],
      ['login', true],
      ['seen', false],
    ])
  })

  test('tells of a store that fails, and of what was left to onStoreError', async () => {
    const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
    const { server, ping } = await serveMounted({ store })
    store.before = failures[0]?.[1] as () => unknown
    const { until } = await look(server)
    await until('snapshot')
    await ping.hit('anna')
    const { counts } = await until('tick', (data) => data.counts[0].some((count: number) => count > 0))
    expect(counts[0].filter((count: number) => count > 0)).toEqual([1])
    expect(counts[0].findIndex((count: number) => count > 0) % 3).toBe(2)
    const tick = await until('tick', (data) => data.store.batches.failed > 0)
    expect(tick.store.health.lastError).toBe('ERR_STORE_CONNECTION')
  })

  test('looks up how full a key is once the last decision on it is some seconds old', async () => {
    const { server, ping, store } = await serveMounted()
    await ping.hit('anna')
    const { until } = await look(server)
    // Behind the dashboard's back, as another process would.
    await store.reset(['ping:anna'])
    const isFresh = (data: { lists: ({ busiest: { fill: { used: number } }[] } | null)[] }): boolean =>
      data.lists[0]?.busiest[0]?.fill.used === 0
    await until('tick', isFresh)
  }, 20_000)

  test('asks the store how large it is', async () => {
    const { server, ping } = await serveMounted()
    await ping.hit('anna')
    const { until } = await look(server)
    const { store } = await until('tick', (data) => data.store.inspection !== null)
    expect(store.inspection).toMatchObject({ keys: 1, events: 1, precision: 'exact' })
  })

  test('hostile keys travel as they are, and long ones cut', async () => {
    const { server, login } = await serveMounted()
    const hostile = [
      '</script><script>alert(1)</script>',
      '\u202Eevil',
      'a\n\nevent: snapshot\ndata: {}',
      '\uD800',
    ]
    for (const key of hostile) await login.hit(key)
    const long = 'x'.repeat(10_000)
    await login.hit(long)
    const { until } = await look(server)
    const { limits } = await until('snapshot')
    const rows = limits[1].busiest as { key: string; cut: boolean }[]
    expect(
      rows
        .filter(({ cut }) => !cut)
        .map(({ key }) => key)
        .sort(),
    ).toEqual([...hostile].sort())
    const [cut] = rows.filter((row) => row.cut)
    expect(cut?.key.startsWith('x'.repeat(512))).toBe(true)
    expect(cut?.key.length).toBeLessThan(600)
  })

  test('lets no more look than it may, and others in when one has left', async () => {
    const { server } = await serveMounted({ maxViewers: 2 })
    const [first] = [await look(server), await look(server)]
    const refused = await request(server).get('/limits/api/events').expect(503)
    expect(refused.type).toBe('application/problem+json')
    expect(refused.headers['retry-after']).toBe('15')
    first?.leave()
    for (;;) {
      const next = await look(server)
      if (next.response.statusCode === 200) break
      await next.ended
    }
  })

  test('nothing is left of a viewer who has gone', async () => {
    const { server, page } = await serveMounted()
    const before = timers()
    const viewers = [await look(server), await look(server)]
    await viewers[1]?.until('tick')
    for (const each of viewers) each.leave()
    const gone = (): Promise<number> =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      )
    while ((await gone()) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    page.close()
    expect(timers()).toBeLessThanOrEqual(before)
  })

  test('close ends every stream, so that the server can stop, and takes no new ones', async () => {
    const { server, page } = await serveMounted()
    const { ended } = await look(server)
    page.close()
    await ended
    await request(server).get('/limits/api/events').expect(503)
  })

  test('arrives at once behind compression, even where that compresses it', async () => {
    const mounted = mount({}, express)
    const app = express()
    app.use(compression({ filter: () => true, threshold: 0 }))
    // Without it `compression` leaves the stream alone; a proxy's rewriting of headers can take it away.
    app.use((_req, res, next) => {
      const { setHeader } = res
      res.setHeader = (name, value) =>
        setHeader.call(res, name, name === 'Cache-Control' ? 'no-store' : (value as string))
      next()
    })
    app.use(mounted.app)
    const server = await serve(app as never)
    const text = await new Promise<string>((resolve) => {
      const options = {
        port: portOf(server),
        path: '/limits/api/events',
        headers: { 'Accept-Encoding': 'gzip' },
      }
      const asked = get(options, (response) => {
        expect(response.headers['content-encoding']).toBe('gzip')
        let all = ''
        const gunzip = createGunzip().setEncoding('utf8')
        gunzip.on('data', (chunk) => {
          all += chunk
          if (!all.includes('event: tick')) return
          asked.destroy()
          resolve(all)
        })
        response.on('data', (chunk) => gunzip.write(chunk))
      })
      asked.on('error', () => {})
    })
    expect(text).toMatch(/^retry: \d+\n\nevent: snapshot\n/)
  })

  test('compression leaves it alone as it is', async () => {
    const mounted = mount({}, express)
    const app = express()
    app.use(compression(), mounted.app)
    const { response, until } = await look(await serve(app as never), { 'Accept-Encoding': 'gzip' })
    await until('snapshot')
    expect(response.headers['content-encoding']).toBeUndefined()
  })
})
