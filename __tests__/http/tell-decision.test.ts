import {
  addressKey,
  clientAddress,
  Limiter,
  MemoryStore,
  rateLimit,
  refusalProblem,
  type TellDecisionOptions,
  tellDecision,
} from 'express-sql-rate-limit'

/** What other frameworks have instead of a response of node:http. */
function headers() {
  const fields = new Headers()
  return {
    fields,
    getHeader: (name: string) => fields.get(name) ?? undefined,
    setHeader: (name: string, value: string) => fields.set(name, value),
    removeHeader: (name: string) => fields.delete(name),
  }
}

const create = (options: { name?: string; limit?: number } = {}) =>
  new Limiter({ store: new MemoryStore(), limit: 2, windowSeconds: 60, ...options })

test('tells of a decision wherever fields can be set', async () => {
  const limiter = create({ name: 'api' })
  const res = headers()
  tellDecision(res, limiter, await limiter.hit('k'))
  expect(Object.fromEntries(res.fields)).toEqual({
    ratelimit: '"api";r=1;t=60',
    'ratelimit-policy': '"api";q=2;w=60',
  })
})

test('adds to what an earlier limiter told; a refusal leaves only its own limit', async () => {
  const [wide, narrow] = [create({ name: 'wide', limit: 100 }), create({ name: 'narrow', limit: 1 })]
  const [first, second] = [headers(), headers()]
  for (const res of [first, second]) {
    tellDecision(res, wide, await wide.hit('k'))
    tellDecision(res, narrow, await narrow.hit('k'))
  }
  expect(first.fields.get('ratelimit')).toBe('"wide";r=99;t=60, "narrow";r=0;t=60')
  expect(Object.fromEntries(second.fields)).toEqual({
    ratelimit: '"narrow";r=0;t=60',
    'ratelimit-policy': '"wide";q=100;w=60, "narrow";q=1;w=60',
    'retry-after': '60',
  })
})

test('takes what rateLimit() returns for a limiter, and the forms of its options', async () => {
  const limiter = rateLimit({ store: new MemoryStore(), limit: 2, windowSeconds: 60 })
  const res = headers()
  const decision = await limiter.hit('k')
  tellDecision(res, limiter, decision, { standardHeaders: 'draft-7', legacyHeaders: true })
  expect(Object.fromEntries(res.fields)).toMatchObject({
    ratelimit: 'limit=2, remaining=1, reset=60',
    'ratelimit-policy': '2;w=60',
    'x-ratelimit-limit': '2',
  })
  const none = headers()
  tellDecision(none, limiter, decision, { standardHeaders: false })
  expect([...none.fields]).toEqual([])
})

test.each<[string, unknown]>([
  ['an unknown form', { standardHeaders: 'draft-9' }],
  ['a form that every object has', { standardHeaders: 'toString' }],
  ['legacy headers that are no yes or no', { legacyHeaders: 'yes' }],
  ['an unknown option', { headers: true }],
])('refuses %s', async (_, options) => {
  const limiter = create()
  const decision = await limiter.hit('k')
  expect(() => tellDecision(headers(), limiter, decision, options as TellDecisionOptions)).toThrow(TypeError)
})

test('the problem of a decision that lets pass is a mistake', async () => {
  const decision = await create().hit('k')
  expect(() => refusalProblem(decision)).toThrow(TypeError)
})

test('the address of a request that has only a socket is that of the socket', () => {
  const req = { socket: { remoteAddress: '::ffff:203.0.113.9' } }
  expect(addressKey(req)).toBe('203.0.113.9')
  expect(clientAddress(req)).toBe('203.0.113.9')
  expect(addressKey({ ip: '2001:db8::1' }, { ipv6Subnet: 64 })).toBe('2001:db8::/64')
})
