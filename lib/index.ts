export { addressKey } from './http/address-key.js'
export type { DenialHandler, KeyFunction, RateLimitOptions } from './http/options.js'
export { denialProblem } from './http/problem.js'
export { type RateLimitMiddleware, rateLimit } from './http/rate-limit.js'
export {
  type LimiterStatus,
  type RateLimitStatusOptions,
  rateLimitStatus,
  type StatusLimiter,
} from './http/rate-limit-status.js'
export type {
  AllowedDecision,
  Decision,
  DegradedDecision,
  DeniedDecision,
} from './limiter/decision.js'
export type { Logger } from './limiter/failure-log.js'
export { type HitOptions, Limiter } from './limiter/limiter.js'
export type { LimiterOptions } from './limiter/limiter-options.js'
export type { Key } from './limiter/storage-key.js'
export { MemoryStore, type MemoryStoreOptions } from './stores/memory-store.js'
export { MysqlStore, type MysqlStoreOptions } from './stores/mysql/mysql-store.js'
export { SqliteStore, type SqliteStoreOptions } from './stores/sqlite/sqlite-store.js'
export type {
  Algorithm,
  Batch,
  Charge,
  Hit,
  Policy,
  Reading,
  Refusal,
  Store,
  SweepResult,
  Verdict,
} from './stores/store.js'
export { StoreError, type StoreErrorCode } from './stores/store-error.js'
