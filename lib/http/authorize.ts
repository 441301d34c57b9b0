import type { Request } from 'express'
import { optionError } from '../stores/option-error.js'

/**
 * Who may use a route for operators: a function that tells for each request, or `'none'` where something in front of
 * the route has asked already, such as your own middleware or the network. There is no default, as such a route shows
 * the state of any key.
 *
 * Only `true` lets a request in. `false`, any other value, a rejection and a throw answer 403.
 */
export type Authorize = 'none' | ((req: Request) => boolean | Promise<boolean>)

/**
 * The same for what can be looked at and acted on: `true` allows both, `'read'` to look only. `'none'` allows both to
 * everybody who can reach the route.
 */
export type AuthorizeActions = 'none' | ((req: Request) => boolean | 'read' | Promise<boolean | 'read'>)

/** What a request may do: look and act, or look only. */
export type Permission = 'act' | 'read'

/** @throws TypeError unless the value is a function or `'none'`: a route that nobody thought about does not mount. */
export function checkAuthorize(value: unknown): asserts value is Authorize {
  if (typeof value === 'function' || value === 'none') return
  const rule = "a function of the request, or 'none' where only operators can reach the route"
  throw optionError('authorize', rule, value)
}

/** Whether the request may go on. Never rejects. */
export const isAuthorized = async (authorize: Authorize, req: Request): Promise<boolean> =>
  (await permissionOf(authorize, req)) === 'act'

/** What the request may do, or null for nothing. Never rejects. */
export async function permissionOf(authorize: AuthorizeActions, req: Request): Promise<Permission | null> {
  if (authorize === 'none') return 'act'
  try {
    const answer: unknown = await authorize(req)
    // Not only truthy: a function that forgets to return, or returns a user's record or null, is no permission.
    return answer === true ? 'act' : answer === 'read' ? 'read' : null
  } catch {
    // What it threw may hold SQL or a token, and is no permission either.
    return null
  }
}
