import { MemoryStore } from 'express-sql-rate-limit'
import request from 'supertest'
import { createProxiedApp, TRUST_PROXY } from '../../examples/behind-a-proxy.js'

const CLIENT = '203.0.113.9'
const PROXY = '198.51.100.7'
const FORGED = '192.0.2.1'

/** What arrives when each proxy has appended who called it; who calls last is the peer of the connection. */
const forwarded = (proxies: number, claimed?: string) =>
  [claimed, CLIENT, ...Array<string>(proxies - 1).fill(PROXY)].filter((each) => each !== undefined).join(', ')

describe.each(Object.entries(TRUST_PROXY))('examples/behind-a-proxy.ts: behind %s', (front, proxies) => {
  test('a client is who the proxies say, whatever it says itself', async () => {
    const store = new MemoryStore()
    const app = createProxiedApp(store, front as keyof typeof TRUST_PROXY)
    const ask = (header: string) => request(app).get('/my-address').set('X-Forwarded-For', header)
    await ask(forwarded(proxies)).expect(200, { address: CLIENT, key: CLIENT })
    await ask(forwarded(proxies, FORGED)).expect(200, { address: CLIENT, key: CLIENT })
    await ask(forwarded(proxies, `${FORGED}, 10.0.0.1`)).expect(200)
    await ask(forwarded(proxies, '192.0.2.2')).expect(429)
    await store.close()
  })
})

test('a port beside the address, as load balancers write on demand, makes no other client', async () => {
  const store = new MemoryStore()
  const app = createProxiedApp(store, 'alb')
  const ask = (header: string) => request(app).get('/my-address').set('X-Forwarded-For', header)
  for (const port of [1, 2, 3]) expect((await ask(`${CLIENT}:5123${port}`)).body.key).toBe(CLIENT)
  await ask(CLIENT).expect(429)
  await store.close()
})
