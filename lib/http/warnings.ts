import type { Request } from 'express'
import type { Key } from '../limiter/storage-key.js'

/** What a limiter warns of; docs/warnings.md has a section for each. */
export type WarningCode =
  | 'WRN_FORWARDED_IGNORED'
  | 'WRN_TRUST_PROXY_ALL'
  | 'WRN_NO_ADDRESS'
  | 'WRN_CREATED_IN_HANDLER'
  | 'WRN_COUNTED_TWICE'
  | 'WRN_RAW_IPV6_KEY'

/** Where warnings go: to `warn`, and to `error` where there is none. `console` is one. */
export interface WarningLogger {
  warn?(message: string): void
  error(message: string): void
}

/** What was seen, why it matters, and what to do. The first three are about the application, the others one limiter. */
const MESSAGES: Record<WarningCode, string> = {
  WRN_FORWARDED_IGNORED:
    "A request carries X-Forwarded-For or Forwarded, but Express's `trust proxy` is off: behind a proxy all clients are counted as one, the proxy. Set `trust proxy` to the number of your proxies; without a proxy a client wrote the header, and ignoring it is right.",
  WRN_TRUST_PROXY_ALL:
    "Express's `trust proxy` is true, so `req.ip` is whatever a client writes into X-Forwarded-For, and a new address with every request has no limit. Set it to the number of your proxies, or to their addresses.",
  WRN_NO_ADDRESS:
    'A request has no address, as on a Unix socket behind a proxy: all such requests are one client to a limiter by address. Set `trust proxy`, or choose what happens to them with `missingKey`.',
  WRN_CREATED_IN_HANDLER:
    'It was created while a request was being handled: a limiter for each request batches nothing, remembers no denial, and with a store of its own limits nothing. Create it once, at start, and mount it.',
  WRN_COUNTED_TWICE:
    'A request met it twice and was counted once. Mount it in one place, or make two limiters with a `name` each if you want two limits.',
  WRN_RAW_IPV6_KEY:
    'Its `keyFn` returned the whole address of an IPv6 client, who has at least 2^64 of them and so no limit. Use `addressKey(req)` in place of `req.ip`.',
}

const ABOUT_A_LIMITER: ReadonlySet<WarningCode> = new Set([
  'WRN_CREATED_IN_HANDLER',
  'WRN_COUNTED_TWICE',
  'WRN_RAW_IPV6_KEY',
])

/**
 * What each logger was told, by the method that tells it: one that is replaced, or spied on in a test, has heard
 * nothing yet.
 */
const toldTo = new WeakMap<object, Set<string>>()

/** Names of limiters that an application makes up for each tenant are no reason for endless warnings. */
const MOST_WARNINGS = 100

/**
 * The warnings of one limiter. Each is told once in a process and to one logger: those about the application
 * (forwarded headers, `trust proxy`, no address) once in all, those about a limiter once for its name.
 *
 * The checks run with every request. None costs more than a look at a setting and two headers, or a search in the key
 * of an IPv6 client; one that has told its warning costs a comparison. None ever throws.
 *
 * @example
 * const warnings = new Warnings(console, 'login')
 * warnings.checkRequest(req)
 */
export class Warnings {
  readonly #logger: WarningLogger
  readonly #limiter: string
  readonly #done = new Set<WarningCode>()

  constructor(logger: WarningLogger, limiter: string) {
    this.#logger = logger
    this.#limiter = limiter
  }

  /** Tells a warning unless it was told before. `message` is for a code that needs other words than its own. */
  warn(code: WarningCode, message: string = MESSAGES[code]): void {
    if (this.#done.has(code)) return
    this.#done.add(code)
    const subject = ABOUT_A_LIMITER.has(code) ? `Rate limiter "${this.#limiter}": ` : ''
    try {
      if (!isNew(this.#logger.warn ?? this.#logger.error, `${code} ${subject}`)) return
      const page = `docs/warnings.md#${code.toLowerCase().replaceAll('_', '-')}`
      const text = `${code}: ${subject}${message} See ${page}`
      if (this.#logger.warn === undefined) this.#logger.error(text)
      else this.#logger.warn(text)
    } catch {
      // A logger that throws must not fail the request.
    }
  }

  /** Looks at how the application sees its proxies (hazards 112 and 113). Call it at entry. */
  checkRequest(req: Request): void {
    if (this.#done.has('WRN_FORWARDED_IGNORED') || this.#done.has('WRN_TRUST_PROXY_ALL')) return
    const { app, headers } = req
    if (typeof app?.get !== 'function') return
    // Express reads it the same way: undefined, false and 0 trust nobody.
    const trust = app.get('trust proxy')
    if (trust === true) this.warn('WRN_TRUST_PROXY_ALL')
    else if (!trust && (headers?.['x-forwarded-for'] ?? headers?.forwarded) !== undefined) {
      this.warn('WRN_FORWARDED_IGNORED')
    }
  }

  /** Looks at what `clientAddress` found, where the key depends on it (hazard 111). */
  checkAddress(address: string | null): void {
    if (address === null) this.warn('WRN_NO_ADDRESS')
  }

  /**
   * Looks for the whole address of an IPv6 client in what `keyFn` returned (hazard 116). An address with a prefix is
   * none, not even with /128: that is somebody's decision.
   *
   * @param address What `clientAddress` found at entry.
   */
  checkKey(key: Key, address: string | null): void {
    if (address === null || !address.includes(':') || address === '::1') return
    if (this.#done.has('WRN_RAW_IPV6_KEY')) return
    const holds = Array.isArray(key)
      ? key.some((part) => holdsAddress(part, address))
      : holdsAddress(key, address)
    if (holds) this.warn('WRN_RAW_IPV6_KEY')
  }

  /** Looks whether a request is being handled. Call it while the limiter is constructed (hazard 128). */
  checkCreation(): void {
    if (isHandlingRequest()) this.warn('WRN_CREATED_IN_HANDLER')
  }
}

function isNew(tell: object, warning: string): boolean {
  let told = toldTo.get(tell)
  if (told === undefined) {
    told = new Set()
    toldTo.set(tell, told)
  }
  if (told.has(warning) || told.size >= MOST_WARNINGS) return false
  told.add(warning)
  return true
}

function holdsAddress(key: unknown, address: string): boolean {
  if (typeof key !== 'string' || key.length < address.length) return false
  const text = key.toLowerCase()
  for (let at = text.indexOf(address); at !== -1; at = text.indexOf(address, at + 1)) {
    // Else it is a prefix, or the beginning of a longer address.
    if (!/[\da-f/]/.test(text.charAt(at + address.length))) return true
  }
  return false
}

/** Express 4 and 5 call handlers, and error handlers, from these methods and no others. */
const HANDLER_CALL = /\bLayer\.(?:handle \[as handle_request\]|handle_error |handleRequest |handleError )/
const DEEPEST_STACK = 100

/**
 * Whether Express is on the stack. It says nothing of a handler that has awaited something before: finding those would
 * cost every request an asynchronous context. A module that a handler is the first to `require` runs once, whoever was
 * first: frames of Node's loader above Express are no handler.
 */
function isHandlingRequest(): boolean {
  const frames = currentStack().split('\n')
  const handler = frames.findIndex((frame) => HANDLER_CALL.test(frame))
  const loader = frames.findIndex((frame) => frame.includes('node:internal/modules/'))
  return handler !== -1 && (loader === -1 || loader > handler)
}

/** The stack as text: deeper than V8's ten frames by default, so that a factory of factories is found too. */
function currentStack(): string {
  const before = Error.stackTraceLimit
  // Intrinsics may be frozen, and what formats stacks may be anybody's.
  try {
    Error.stackTraceLimit = DEEPEST_STACK
    try {
      return String(new Error().stack)
    } finally {
      Error.stackTraceLimit = before
    }
  } catch {
    return ''
  }
}
