import { hostname } from 'node:os'
import type { NextFunction, Request, Response } from 'express'
import { ProblemDocument } from 'http-problem-details'
import { type AuthorizeActions, checkAuthorize, permissionOf } from '../../http/authorize.js'
import { sendForbidden, sendProblem } from '../../http/problem.js'
import { checkOptionNames, optionError } from '../../stores/option-error.js'
import type { Store } from '../../stores/store.js'
import { block, find, reset } from './actions.js'
import { Feed } from './feed.js'
import { FillLookup } from './fill-lookup.js'
import { type DashboardLimiter, ManagedLimits } from './managed-limits.js'
import { isPageFile, sendPageFile, setSecurityHeaders } from './page-files.js'
import { Recorder } from './recorder.js'
import { isForeign, issueToken } from './same-origin.js'
import { StoreView } from './store-view.js'

export interface DashboardOptions {
  /**
   * The limiters whose keys can be looked up, reset and blocked, in the order in which they are shown. All of them count in
   * `store`. What other limiters of this process decide in it is shown too, by the name of their limit, but not more.
   */
  readonly limiters: readonly DashboardLimiter[]
  /** The store that is shown. */
  readonly store: Store
  /**
   * Who may see it, and who may reset and block: a function of the request, may be async, that returns `true` for both,
   * `'read'` for seeing only; anything else answers 403. Or `'none'`, which lets everybody do both. Required.
   */
  readonly authorize: AuthorizeActions
  /** The most people, or tabs, that may look at a time, 1 to 1,000. One more is answered 503. Default 20. */
  readonly maxViewers?: number | undefined
  /**
   * Paths on this origin of ES modules that put something of your own at the top of the page. The default export of each is
   * called with an empty `<section>` element. The page allows no inline script or style and no other host. Default none.
   */
  readonly panels?: readonly string[] | undefined
}

/** A handler to mount with `app.use`. */
export interface Dashboard {
  (req: Request, res: Response, next: NextFunction): Promise<void>
  /**
   * Ends the streams of those who look, and records nothing any more. Call it when the server stops: a server waits for
   * streams that are open.
   */
  close(): void
}

const OPTION_NAMES = ['limiters', 'store', 'authorize', 'maxViewers', 'panels']
/** How long somebody should wait for whom there is no room, in seconds. */
const RETRY_AFTER_SECONDS = 15

/**
 * A page for operators: what each limit of this process allowed, denied and left to `onStoreError` in the last fifteen
 * minutes, live; the busiest and the most denied keys, how full they are and when they are free again; how the store is; and
 * for those who may, `reset` and `block`. Mount it with `use`, at a path of its own, before the limiters.
 *
 * It records from when it is created, in memory of bounded size, what this process decides: each process has its own
 * numbers. How full a key is comes from the store, which all processes share. Keys are shown as they were given, also
 * where `hashKeys` stores them as hashes.
 *
 * @example
 * app.use(
 *   '/limits',
 *   dashboard({
 *     limiters: [globalLimit, loginLimit],
 *     store,
 *     authorize: (req) => req.user?.isAdmin === true || (req.user?.isSupport === true && 'read'),
 *   }),
 * )
 *
 * @throws TypeError for a wrong or unknown option: without `authorize` it does not mount, nor with a limiter that counts in
 *   another store.
 */
export function dashboard(options: DashboardOptions): Dashboard {
  checkOptionNames('dashboard', options, OPTION_NAMES)
  const { limiters, store, authorize, maxViewers = 20, panels = [] } = options
  checkAuthorize(authorize)
  if (typeof store?.decide !== 'function') throw optionError('store', 'a store', store)
  const limits = new ManagedLimits(limiters, store)
  if (!Number.isInteger(maxViewers) || maxViewers < 1 || maxViewers > 1000)
    throw optionError('maxViewers', 'a whole number from 1 to 1000', maxViewers)
  if (!Array.isArray(panels) || !panels.every(isPath))
    throw optionError('panels', 'an array of paths on this origin, such as `/panel.js`', panels)

  const recorder = new Recorder(store, limits.names)
  const feed = new Feed(maxViewers, recorder, limits, new FillLookup(limits), new StoreView(store, recorder))
  let isClosed = false

  const routes: Record<string, (req: Request, res: Response, mayAct: boolean) => unknown> = {
    'GET /api/session': (req, res, mayAct) => {
      res.setHeader('Cache-Control', 'no-store')
      res.json({
        token: issueToken(req, res),
        mayAct,
        panels,
        process: `${hostname()}, process ${process.pid}`,
      })
    },
    'GET /api/events': (req, res) => {
      if (isClosed || feed.viewers.isFull) sendBusy(req, res)
      else feed.open(res)
    },
    'GET /api/find': (req, res) => find(req, res, limits),
    'POST /api/reset': (req, res, mayAct) => (mayAct ? reset(req, res, limits) : sendReadOnly(req, res)),
    'POST /api/block': (req, res, mayAct) => (mayAct ? block(req, res, limits) : sendReadOnly(req, res)),
  }

  async function dashboard(req: Request, res: Response, next: NextFunction): Promise<void> {
    // Express 4 does not look at the promise: whatever fails must reach `next` (hazard 109).
    try {
      const isFile = (req.method === 'GET' || req.method === 'HEAD') && isPageFile(req.path)
      const route = Object.hasOwn(routes, `${req.method} ${req.path}`)
        ? routes[`${req.method} ${req.path}`]
        : undefined
      if (!isFile && route === undefined) return next()
      setSecurityHeaders(res)
      const permission = await permissionOf(authorize, req)
      // Another middleware may have answered meanwhile, such as a timeout (hazard 117).
      if (res.headersSent || res.writableEnded) return
      if (permission === null) sendForbidden(req, res, 'This is for operators.')
      else if (route === undefined) sendFile(req, res, next)
      else if (isForeign(req)) sendForbidden(req, res, 'This is for the page of the dashboard.')
      else await route(req, res, permission === 'act')
    } catch (error) {
      next(error)
    }
  }

  return Object.assign(dashboard, {
    close: () => {
      isClosed = true
      recorder.close()
      feed.viewers.close()
    },
  })
}

/** The page finds its files beside itself, so its own address must end in a slash. */
function sendFile(req: Request, res: Response, next: NextFunction): void {
  const [path = ''] = req.originalUrl.split('?')
  if (req.path !== '/' || path.endsWith('/')) {
    sendPageFile(req.path, res, next)
    return
  }
  // Relative, since a proxy may have taken the first part of the path away.
  res.status(302)
  res.setHeader('Location', `./${path.slice(path.lastIndexOf('/') + 1)}/`)
  res.setHeader('Cache-Control', 'no-store')
  res.end()
}

const sendReadOnly = (req: Request, res: Response): void =>
  sendForbidden(req, res, 'You may look, but not change anything.')

function sendBusy(req: Request, res: Response): void {
  res.setHeader('Retry-After', RETRY_AFTER_SECONDS)
  sendProblem(req, res, new ProblemDocument({ status: 503, detail: 'Too many people are looking.' }))
}

/** Not `//host`, which is another origin. */
const isPath = (value: unknown): boolean => typeof value === 'string' && /^\/(?![/\\])/.test(value)
