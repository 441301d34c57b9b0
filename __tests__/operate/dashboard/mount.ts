import type { Express } from 'express'
import {
  type Dashboard,
  type DashboardOptions,
  dashboard,
  Limiter,
  MemoryStore,
  type Store,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { expressVersions } from '../../http/serve.js'

const mounted: Dashboard[] = []

afterEach(() => {
  for (const each of mounted.splice(0)) each.close()
})

/** An application with a dashboard at `/limits/`, and two limiters. */
export function mount(
  options: Partial<DashboardOptions> = {},
  createExpress: () => Express = expressVersions[1]?.[1] as () => Express,
) {
  const store: Store = options.store ?? new MemoryStore({ sweepSeconds: false })
  const quiet = { error() {} }
  const ping = new Limiter({
    store,
    name: 'ping',
    limit: 3,
    windowSeconds: 60,
    timeoutMs: 60_000,
    logger: quiet,
  })
  const login = new Limiter({
    store,
    name: 'login',
    limit: 5,
    windowSeconds: 900,
    timeoutMs: 60_000,
    logger: quiet,
  })
  const page = dashboard({ limiters: [ping, login], store, authorize: 'none', ...options })
  mounted.push(page)
  const app = createExpress()
  app.use('/limits', page)
  return { app, store, ping, login, page }
}

/** What the page does first: it is given a token, and the cookie that goes with it. */
export async function openSession(app: Express) {
  const { body, headers } = await request(app).get('/limits/api/session').expect(200)
  const [cookie = ''] = (headers['set-cookie'] as unknown as string[])[0]?.split(';') ?? []
  return { token: body.token as string, cookie, mayAct: body.mayAct as boolean }
}

/** An action as the page sends it, with a session of its own. */
export async function act(app: Express, action: 'reset' | 'block', body: object) {
  const { token, cookie } = await openSession(app)
  return request(app)
    .post(`/limits/api/${action}`)
    .set('Cookie', cookie)
    .set('X-Rate-Limit-Token', token)
    .set('Sec-Fetch-Site', 'same-origin')
    .send(body)
}
