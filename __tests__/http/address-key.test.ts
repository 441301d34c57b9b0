import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Request } from 'express'
import { MemoryStore, type RateLimitOptions, rateLimit } from 'express-sql-rate-limit'
import fc from 'fast-check'
import request from 'supertest'
import { type AddressKeyOptions, addressKey, clientAddress } from '../../lib/http/address-key.js'
import { appWith, exchange, expressVersions, portOf, serve, statusesOf } from './serve.js'

const requestOf = (ip: string | undefined, remoteAddress?: string): Request =>
  ({ ip, socket: { remoteAddress } }) as Request
const keyOf = (ip: string | undefined, remoteAddress?: string, options?: AddressKeyOptions): string =>
  addressKey(requestOf(ip, remoteAddress), options)

describe('one client is one key', () => {
  test.each([
    '203.0.113.9',
    '::ffff:203.0.113.9',
    '::FFFF:203.0.113.9',
    '::ffff:cb00:7109',
    '::ffff:CB00:7109',
    '0:0:0:0:0:ffff:203.0.113.9',
    '0:0:0:0:0:ffff:cb00:7109',
    '0000:0000:0000:0000:0000:FFFF:CB00:7109',
    '203.0.113.9:51234',
    '[::ffff:203.0.113.9]:443',
    '64:ff9b::203.0.113.9',
    '64:ff9b::cb00:7109',
  ])('hazard 115: %s is 203.0.113.9', (spelling) => {
    expect(keyOf(spelling)).toBe('203.0.113.9')
  })

  test.each([
    '2001:db8:1:2300::1',
    '2001:DB8:1:2300::1',
    '2001:0db8:0001:2300:0000:0000:0000:0001',
    '2001:db8:1:2300:0:0:0:1',
    '2001:db8:1:2300::1%eth0',
    '[2001:db8:1:2300::1]',
    '[2001:db8:1:2300::1]:443',
    '[2001:DB8:1:2300::1%eth0]:443',
    '2001:db8:1:23ff:ffff:ffff:ffff:ffff',
  ])('hazards 115 and 116: %s is the /56 it lies in', (spelling) => {
    expect(keyOf(spelling)).toBe('2001:db8:1:2300::/56')
  })
})

describe('two clients are two keys', () => {
  test.each([
    ['two IPv4 addresses', '203.0.113.9', '203.0.113.10'],
    ['two mapped addresses', '::ffff:203.0.113.9', '::ffff:203.0.113.10'],
    ['two addresses behind NAT64', '64:ff9b::203.0.113.9', '64:ff9b::203.0.113.10'],
    ['neighbouring /56 networks', '2001:db8:1:2300::1', '2001:db8:1:2400::1'],
    ['IPv4 and IPv6 loopback', '127.0.0.1', '::1'],
    ['networks that differ in their first bits', '2001:db8::1', 'a001:db8::1'],
  ])('hazard 115: %s', (_, one, other) => {
    expect(keyOf(one)).not.toBe(keyOf(other))
  })

  test('hazard 115: every IPv4 address has its own, mapped or not', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV4(), (one, other) => {
        expect(keyOf(`::ffff:${one}`)).toBe(keyOf(one))
        expect(keyOf(one) === keyOf(other)).toBe(one === other)
      }),
    )
  })
})

describe('what is no address', () => {
  test.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['a word', 'not-an-ip'],
    ['"unknown"', 'unknown'],
    ['5,000 characters', '9'.repeat(5000)],
    ['5,000 characters of an address', `2001:db8::1%${'x'.repeat(5000)}`],
    ['too many numbers', '1.2.3.4.5'],
    ['a number too high', '256.1.1.1'],
    ['an octal address', '0377.1.1.1'],
    ['a hexadecimal address', '0x7f.1.1.1'],
    ['an address as one number', '3405803785'],
    ['an address with a prefix', '203.0.113.9/24'],
    ['a list of addresses', '203.0.113.9, 203.0.113.10'],
    ['an address with a blank', ' 203.0.113.9'],
    ['an address with a line end', '203.0.113.9\n'],
    ['a bracket without its other', '[2001:db8::1'],
    ['an address with no port after its colon', '203.0.113.9:'],
    ['an address with a word as port', '203.0.113.9:http'],
  ])('hazard 114: %s is never a key: the address of the socket is', (_, ip) => {
    expect(keyOf(ip, '::ffff:198.51.100.7')).toBe('198.51.100.7')
  })

  test('hazard 111: without any address there is one key for all, and not none', () => {
    expect(keyOf(undefined, undefined)).toBe('no-address')
    expect(keyOf('not-an-ip', undefined)).toBe('no-address')
    expect(keyOf('', '')).toBe('no-address')
  })

  test('hazard 114: whatever is written, the key is short and of few characters', () => {
    const written = fc.oneof(fc.string({ unit: 'binary' }), fc.ipV4(), fc.ipV6(), fc.ipV4Extended())
    fc.assert(
      fc.property(written, fc.constantFrom('', ':80', '%eth0', ']:1'), (text, suffix) => {
        expect(keyOf(text + suffix, '127.0.0.1')).toMatch(/^[0-9a-f.:]{2,39}(\/56)?$/)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('how many bits of IPv6', () => {
  test.each([
    [32, '2001:db8::/32'],
    [33, '2001:db8:8000::/33'],
    [44, '2001:db8:fff0::/44'],
    [48, '2001:db8:ffff::/48'],
    [55, '2001:db8:ffff:fe00::/55'],
    [56, '2001:db8:ffff:ff00::/56'],
    [57, '2001:db8:ffff:ff80::/57'],
    [64, '2001:db8:ffff:ffff::/64'],
    [127, '2001:db8:ffff:ffff:ffff:ffff:ffff:fffe/127'],
    [128, '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128'],
  ])('hazard 116: by %i', (ipv6Subnet, key) => {
    expect(keyOf('2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '', { ipv6Subnet })).toBe(key)
    expect(keyOf('2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '', { ipv6Subnet: () => ipv6Subnet })).toBe(key)
  })

  test('hazard 116: two addresses are one client if, and only if, they agree in so many bits', () => {
    const bits = (n: bigint): string =>
      Array.from({ length: 8 }, (_, i) => ((n >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(':')
    const address = fc.bigInt({ min: 1n << 125n, max: (1n << 126n) - 1n })
    fc.assert(
      fc.property(address, fc.nat(127), fc.integer({ min: 32, max: 128 }), (n, flipped, ipv6Subnet) => {
        const other = n ^ (1n << BigInt(127 - flipped))
        const isSame = keyOf(bits(n), '', { ipv6Subnet }) === keyOf(bits(other), '', { ipv6Subnet })
        expect(isSame).toBe(flipped >= ipv6Subnet)
      }),
    )
  })

  test('IPv4, mapped and loopback addresses have none', () => {
    const ipv6Subnet = jest.fn(() => 64)
    expect(['203.0.113.9', '::ffff:203.0.113.9', '::1'].map((ip) => keyOf(ip, '', { ipv6Subnet }))).toEqual([
      '203.0.113.9',
      '203.0.113.9',
      '::1',
    ])
    expect(ipv6Subnet).not.toHaveBeenCalled()
  })

  test('a function is asked with the request', () => {
    const req = requestOf('2001:db8:1:2:3::')
    const ipv6Subnet = jest.fn(() => 64)
    expect(addressKey(req, { ipv6Subnet })).toBe('2001:db8:1:2::/64')
    expect(ipv6Subnet).toHaveBeenCalledWith(req)
  })

  test.each([0, 31, 129, 56.5, -1, Number.NaN, Number.POSITIVE_INFINITY, '64', null, 64n, {}, [64], false])(
    'a wrong number of bits throws: %p',
    (value) => {
      const ipv6Subnet = value as number
      expect(() => keyOf('203.0.113.9', '', { ipv6Subnet })).toThrow(TypeError)
      expect(() => keyOf('2001:db8::1', '', { ipv6Subnet: () => ipv6Subnet })).toThrow(
        /`ipv6Subnet`.* 32 to 128/,
      )
    },
  )

  test('undefined is the default, an unknown option throws', () => {
    expect(keyOf('2001:db8::1', '', { ipv6Subnet: undefined })).toBe('2001:db8::/56')
    expect(() => keyOf('2001:db8::1', '', { ipv6subnet: 64 } as AddressKeyOptions)).toThrow(TypeError)
  })
})

describe('the whole address', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['64:ff9b::203.0.113.9', '203.0.113.9'],
    ['[2001:DB8:0:0:0:0:0:1%eth0]:443', '2001:db8::1'],
    ['::1', '::1'],
    ['unknown', '198.51.100.7'],
  ])('%s is %s', (ip, address) => {
    expect(clientAddress(requestOf(ip, '198.51.100.7'))).toBe(address)
  })

  test('hazard 111: none is null, also without a socket', () => {
    expect(clientAddress(requestOf(undefined))).toBeNull()
    // Each time anew: what is no address says nothing of who sends it.
    for (const socket of ['198.51.100.7', '198.51.100.8']) {
      expect(clientAddress(requestOf('unknown', socket))).toBe(socket)
    }
    expect(clientAddress({} as Request)).toBeNull()
    expect(addressKey({} as Request)).toBe('no-address')
  })
})

describe.each(expressVersions)('over the wire on Express %s', (_, express) => {
  function limited(options: Partial<RateLimitOptions> = {}, trustProxy: unknown = false) {
    const store = new MemoryStore({ sweepSeconds: false })
    // What these requests are warned of is tested with the warnings.
    const logger = { warn() {}, error: console.error }
    const app = appWith(express, rateLimit({ store, limit: 1, windowSeconds: 60, logger, ...options }))
    app.set('trust proxy', trustProxy)
    const keys = () => app.handled.map((req) => req.rateLimit?.key)
    const forwarded = (addresses: string) => request(app).get('/').set('X-Forwarded-For', addresses)
    return { app, keys, forwarded }
  }

  async function statusOf(options: RequestOptions): Promise<number | undefined> {
    const [response] = (await once(httpRequest(options).end(), 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }

  test('hazard 115: two IPv4 clients on a listener of both families are two', async () => {
    const { app, keys } = limited()
    const port = portOf(await serve(app))
    const from = (localAddress: string) => statusOf({ host: '127.0.0.1', port, localAddress })
    expect([await from('127.0.0.1'), await from('127.0.0.2'), await from('127.0.0.1')]).toEqual([
      200, 200, 429,
    ])
    expect(keys()).toEqual(['127.0.0.1', '127.0.0.2'])
  })

  test('hazard 111: clients on a Unix socket share one counter, and are limited', async () => {
    const { app, keys } = limited()
    const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
    try {
      const socketPath = join(folder, 'socket')
      await serve(app, { path: socketPath })
      expect([await statusOf({ socketPath }), await statusOf({ socketPath })]).toEqual([200, 429])
      expect(keys()).toEqual(['no-address'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('hazard 112: without `trust proxy` no header is read', async () => {
    const { app, keys, forwarded } = limited({ limit: 2 })
    await forwarded('198.51.100.1').expect(200)
    await request(app)
      .get('/')
      .set({ Forwarded: 'for=198.51.100.2', 'X-Real-IP': '198.51.100.3' })
      .expect(200)
    await forwarded('198.51.100.4').expect(429)
    expect(keys()).toEqual(['127.0.0.1', '127.0.0.1'])
  })

  test('hazard 113: behind one trusted proxy the address that proxy wrote counts, not what the client wrote', async () => {
    const { keys, forwarded } = limited({}, 1)
    await forwarded('1.1.1.1, 9.9.9.9').expect(200)
    await forwarded('2.2.2.2, 9.9.9.9').expect(429)
    expect(keys()).toEqual(['9.9.9.9'])
  })

  test.each([
    ['not-an-ip', '127.0.0.1'],
    ['9.9.9.9:1234', '9.9.9.9'],
    ['[2001:db8::1]:99', '2001:db8::/56'],
    ['x'.repeat(5000), '127.0.0.1'],
  ])('hazard 114: behind a trusted proxy %.20s is the key %s', async (header, key) => {
    const { keys, forwarded } = limited({}, 1)
    await forwarded(header).expect(200)
    await forwarded(header).expect(429)
    expect(keys()).toEqual([key])
  })

  test('hazard 116: 100 addresses of one /56 are one client, those of the next are another', async () => {
    const { app, forwarded } = limited({ limit: 10 }, 1)
    for (const network of ['2001:db8:0:ff', '2001:db8:0:100']) {
      for (let i = 0; i < 50; i += 1) await forwarded(`${network}:${i.toString(16)}:1:2:${i}`)
    }
    expect(app.handled).toHaveLength(20)
  })

  test('hazard 126: spellings of a path that reach a handler are counted together', async () => {
    const store = new MemoryStore({ sweepSeconds: false })
    const limiter = rateLimit({ store, limit: 1000, windowSeconds: 60 })
    const app = express()
    app.post('/login', limiter, (_req, res) => {
      res.send('in')
    })
    const server = await serve(app)
    const paths = [
      ...['/login', '/LOGIN', '/Login/', '/login?x=1', '/login/?x=1', '/login#x', '/%6Cogin', '/login%2F'],
      ...['//login', '/./login', '/x/../login', '/login//', 'http://x/login', '/login;x'],
    ]
    const post = (path: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`
    const bytes = `${paths.map(post).join('')}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const passed = statusesOf(await exchange(server, bytes)).filter((status) => status === 200)
    expect(passed.length).toBeGreaterThanOrEqual(6)
    expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: passed.length })
  })
})
