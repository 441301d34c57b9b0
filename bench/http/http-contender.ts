import type { RequestHandler } from 'express'
import type { StoreKind } from '../contenders/contender.js'

/** What the route is limited to. */
export interface HttpRule {
  readonly limit: number
  readonly windowSeconds: number
}

/** Makes a middleware that counts in a place: a URI with its database, a file, or nothing. */
export type MakeMiddleware = (place: string, rule: HttpRule) => Promise<RequestHandler>

/** A middleware that takes part in the comparison. */
export interface HttpContender {
  readonly name: string
  readonly store: StoreKind
  /** What it is configured with, and on whose advice. */
  readonly configuration: string
  /** Loads what makes the middleware, and nothing else; absent for the bare route. */
  readonly load?: () => Promise<MakeMiddleware>
}
