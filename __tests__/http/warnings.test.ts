import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import request from 'supertest'
import { addressKey, clientAddress } from '../../lib/http/address-key.js'
import { type WarningCode, Warnings } from '../../lib/http/warnings.js'
import { appWith, expressVersions } from './serve.js'

const CODES: Record<WarningCode, true> = {
  WRN_FORWARDED_IGNORED: true,
  WRN_TRUST_PROXY_ALL: true,
  WRN_NO_ADDRESS: true,
  WRN_CREATED_IN_HANDLER: true,
  WRN_COUNTED_TWICE: true,
  WRN_RAW_IPV6_KEY: true,
}
const codes = Object.keys(CODES) as WarningCode[]

/** A logger of its own, which has heard nothing. */
function newLogger() {
  const told: string[] = []
  const logger = { warn: (message: string) => void told.push(message), error: () => {} }
  return { logger, told, codes: () => told.map((message) => message.split(':')[0]) }
}

describe('how a warning is told', () => {
  test.each(codes)('%s says what, why and what to do, and where to read on', (code) => {
    const { logger, told } = newLogger()
    new Warnings(logger, 'login').warn(code)
    const anchor = code.toLowerCase().replaceAll('_', '-')
    expect(told).toHaveLength(1)
    expect(told[0]?.startsWith(`${code}: `)).toBe(true)
    expect(told[0]?.endsWith(` See docs/warnings.md#${anchor}`)).toBe(true)
    expect(told[0]).not.toContain('\n')

    const page = readFileSync('docs/warnings.md', 'utf8')
    const section = page.split(`<a id="${anchor}"></a>\n\n## ${code}\n`)[1]?.split('\n## ')[0]
    for (const part of ['What it means', 'Why it matters', 'What to do', 'How to be sure']) {
      expect(section).toContain(`**${part}.**`)
    }
  })

  test.each<[WarningCode, number]>([
    ['WRN_FORWARDED_IGNORED', 1],
    ['WRN_TRUST_PROXY_ALL', 1],
    ['WRN_NO_ADDRESS', 1],
    ['WRN_CREATED_IN_HANDLER', 2],
    ['WRN_COUNTED_TWICE', 2],
    ['WRN_RAW_IPV6_KEY', 2],
  ])('%s is told %i times of limiters of two names', (code, times) => {
    const { logger, told } = newLogger()
    for (const name of ['one', 'one', 'two']) {
      const warnings = new Warnings(logger, name)
      warnings.warn(code)
      warnings.warn(code)
    }
    expect(told).toHaveLength(times)
    expect(told[0]?.includes('Rate limiter "one"')).toBe(times === 2)
  })

  test('names without end are not warned of without end', () => {
    const { logger, told } = newLogger()
    for (let i = 0; i < 1000; i += 1) new Warnings(logger, `tenant-${i}`).warn('WRN_CREATED_IN_HANDLER')
    expect(told).toHaveLength(100)
  })

  test('a logger without `warn` is told by `error`, and one that throws is no matter', () => {
    const told: string[] = []
    new Warnings({ error: (message) => void told.push(message) }, 'x').warn(
      'WRN_COUNTED_TWICE',
      'Otherwise said.',
    )
    expect(told).toEqual([
      'WRN_COUNTED_TWICE: Rate limiter "x": Otherwise said. See docs/warnings.md#wrn-counted-twice',
    ])
    const thrower = {
      error() {
        throw new Error('full')
      },
    }
    new Warnings(thrower, 'x').warn('WRN_COUNTED_TWICE')
  })

  test('a logger keeps its `this`', () => {
    class Collector {
      readonly told: string[] = []
      warn(message: string) {
        this.told.push(message)
      }
      error() {}
    }
    const collector = new Collector()
    new Warnings(collector, 'x').warn('WRN_COUNTED_TWICE')
    expect(collector.told).toHaveLength(1)
  })

  test.each([1, 2])('console, spied on, is a new reader: %i', () => {
    const spy = jest.spyOn(console, 'warn').mockImplementation(() => {})
    new Warnings(console, 'x').warn('WRN_TRUST_PROXY_ALL')
    expect(spy).toHaveBeenCalledTimes(1)
    spy.mockRestore()
  })
})

describe('the key of an IPv6 client', () => {
  const warningsFor = (ip: string, keyFn: (req: Request) => string | string[]) => {
    const { logger, codes } = newLogger()
    const req = { ip, socket: {} } as Request
    new Warnings(logger, 'x').checkKey(keyFn(req), clientAddress(req))
    return codes()
  }
  const ipOf = (req: Request): string => req.ip as string

  test.each([
    ['the address', '2001:db8::1', ipOf],
    ['the address in a text', '2001:db8::1', (req: Request) => `login:${req.ip}:x`],
    ['the address as a part', '2001:db8::1', (req: Request) => ['login', ipOf(req)]],
    ['the address in capitals', '2001:DB8::A', ipOf],
    ['the address with a zone', 'fe80::1%eth0', ipOf],
    ['a longer address, and the address', '2001:db8::1', (req: Request) => `2001:db8::12 ${req.ip}`],
  ])('hazard 116: %s is warned of', (_, ip, keyFn) => {
    expect(warningsFor(ip, keyFn)).toEqual(['WRN_RAW_IPV6_KEY'])
  })

  test.each([
    ['its prefix', '2001:db8::1', addressKey],
    ['its prefix, of an address that is the first of it', '2001:db8::', addressKey],
    ['a prefix of 128 bits', '2001:db8::1', (req: Request) => addressKey(req, { ipv6Subnet: 128 })],
    ['IPv6 loopback', '::1', ipOf],
    ['an IPv4 address', '203.0.113.9', ipOf],
    ['a mapped IPv4 address', '::ffff:203.0.113.9', ipOf],
    ['no address', '', ipOf],
    ['a user', '2001:db8::1', () => 'user:42'],
    ['another address', '2001:db8::1', () => '2001:db8::12'],
    ['an empty array', '2001:db8::1', () => []],
    ['what is no key', '2001:db8::1', () => 42 as unknown as string],
  ])('%s is not', (_, ip, keyFn) => {
    expect(warningsFor(ip, keyFn)).toEqual([])
  })
})

test('hazard 111: no address is warned of, an address is not', () => {
  const { logger, codes } = newLogger()
  const warnings = new Warnings(logger, 'x')
  warnings.checkAddress('203.0.113.9')
  expect(codes()).toEqual([])
  warnings.checkAddress(null)
  expect(codes()).toEqual(['WRN_NO_ADDRESS'])
})

test('a request that is not from Express is not looked at', () => {
  const { logger, codes } = newLogger()
  const warnings = new Warnings(logger, 'x')
  warnings.checkRequest({ headers: { 'x-forwarded-for': '192.0.2.1' } } as unknown as Request)
  warnings.checkRequest({} as Request)
  expect(codes()).toEqual([])
})

describe.each(expressVersions)('on Express %s', (version, express) => {
  describe('forwarded addresses', () => {
    const ask = async (trustProxy: unknown, headers: Record<string, string>, isMounted = false) => {
      const { logger, codes } = newLogger()
      const warnings = new Warnings(logger, 'x')
      const check: RequestHandler = (req, _res, next) => {
        warnings.checkRequest(req)
        next()
      }
      const app = appWith(express, isMounted ? express().use(check) : check)
      if (trustProxy !== undefined) app.set('trust proxy', trustProxy)
      await request(app).get('/').set(headers).expect(200)
      await request(app).get('/').set(headers).expect(200)
      return codes()
    }
    const forwarded = { 'X-Forwarded-For': '192.0.2.1' }

    test.each([undefined, false, 0])('hazard 112: while `trust proxy` is %p', async (trust) => {
      expect(await ask(trust, forwarded)).toEqual(['WRN_FORWARDED_IGNORED'])
      expect(await ask(trust, { Forwarded: 'for=192.0.2.1' })).toEqual(['WRN_FORWARDED_IGNORED'])
      expect(await ask(trust, { 'X-Real-IP': '192.0.2.1' })).toEqual([])
      expect(await ask(trust, {})).toEqual([])
    })

    test('hazard 113: while `trust proxy` is true, whatever is sent', async () => {
      expect(await ask(true, forwarded)).toEqual(['WRN_TRUST_PROXY_ALL'])
      expect(await ask(true, {})).toEqual(['WRN_TRUST_PROXY_ALL'])
    })

    test.each([1, 2, 'loopback', ['10.0.0.0/8'], () => true])('none while it is %p', async (trust) => {
      expect(await ask(trust, forwarded)).toEqual([])
    })

    test('an application inside of another has its setting', async () => {
      expect(await ask(1, forwarded, true)).toEqual([])
      expect(await ask(true, forwarded, true)).toEqual(['WRN_TRUST_PROXY_ALL'])
    })
  })

  describe('where a limiter is created', () => {
    const { logger, codes } = newLogger()
    const told = () => codes().length
    let name = 0
    /** As a factory of limiters would: construct, and be a middleware. */
    const create = (): RequestHandler => {
      name += 1
      new Warnings(logger, `limiter-${name}`).checkCreation()
      return (_req, _res, next) => next()
    }
    const deep = (levels: number): RequestHandler => (levels === 0 ? create() : deep(levels - 1))
    const whileAsked = async (app: ReturnType<typeof appWith>): Promise<number> => {
      const before = told()
      await request(app).get('/')
      return told() - before
    }

    const atModuleLevel = create()
    const onStart = express()
    onStart.use(create(), express.Router().use(create()))

    test('hazard 128: in a handler, a router, a route, an error handler, and deep in a factory', async () => {
      const handler: RequestHandler = (req, res, next) => create()(req, res, next)
      const failing: RequestHandler = (_req, _res, next) => next(new Error('x'))
      const onError = (_error: unknown, _req: Request, _res: Response, next: NextFunction) =>
        void next(create())
      expect(await whileAsked(appWith(express, handler))).toBe(1)
      expect(await whileAsked(appWith(express, express.Router().use(handler)))).toBe(1)
      expect(await whileAsked(appWith(express, express.Router().get('/', handler)))).toBe(1)
      expect(await whileAsked(appWith(express, async (_req, _res, next) => deep(60) && next()))).toBe(1)
      const app = express()
      app.use(failing, onError as never)
      expect(await whileAsked(Object.assign(app, { handled: [], errors: [] }))).toBe(1)
    })

    test('nothing is said of one created at module level, at start, or in a test', async () => {
      expect(await whileAsked(appWith(express, atModuleLevel, onStart, create(), deep(60)))).toBe(0)
    })

    test('nor of one in an async start function', async () => {
      const start = async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return appWith(express, create())
      }
      expect(await whileAsked(await start())).toBe(0)
    })

    test('nor of one in a module that a handler is the first to load', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
      try {
        // In a process of its own: Jest has another loader than Node.
        const file = join(folder, 'limits.cjs')
        writeFileSync(file, "create('module')")
        const script = `
          import { createRequire } from 'node:module'
          import express from '${version === '4' ? 'express4' : 'express'}'
          import { Warnings } from './lib/http/warnings.ts'
          const load = createRequire(import.meta.url)
          globalThis.create = (where) => {
            const tell = (message) => console.log(where, message.split(':')[0])
            console.log(where, 'created')
            new Warnings({ warn: tell, error: tell }, where).checkCreation()
          }
          const app = express()
          app.get('/module', (req, res) => { load('${file}'); res.end() })
          app.get('/handler', (req, res) => { create('handler'); res.end() })
          const server = app.listen(0, '127.0.0.1', async () => {
            for (const path of ['module', 'handler']) await fetch('http://127.0.0.1:' + server.address().port + '/' + path)
            process.exit()
          })`
        const run = promisify(execFile)
        const { stdout } = await run(process.execPath, [
          '--import',
          'tsx',
          '--input-type=module',
          '-e',
          script,
        ])
        expect(stdout.trim().split('\n')).toEqual([
          'module created',
          'handler created',
          'handler WRN_CREATED_IN_HANDLER',
        ])
      } finally {
        rmSync(folder, { recursive: true })
      }
    })

    test("V8's settings are as before, and no matter", async () => {
      const { stackTraceLimit, prepareStackTrace } = Error
      try {
        Error.stackTraceLimit = 0
        const handler: RequestHandler = (req, res, next) => create()(req, res, next)
        expect(await whileAsked(appWith(express, handler))).toBe(1)
        expect(Error.stackTraceLimit).toBe(0)
        Error.prepareStackTrace = () => {
          throw new Error('no stack')
        }
        create()
        expect(Error.stackTraceLimit).toBe(0)
      } finally {
        Object.assign(Error, { stackTraceLimit, prepareStackTrace })
      }
    })
  })
})
