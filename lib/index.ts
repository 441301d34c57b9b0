export {
  type AddressedRequest,
  type AddressKeyOptions,
  addressKey,
  clientAddress,
} from './http/address-key.js'
export type { Authorize, AuthorizeActions } from './http/authorize.js'
export { type Cooldown, type CooldownOptions, type CooldownState, cooldown } from './http/cooldown.js'
export type {
  ExpressRateLimitOptions,
  ExpressRateLimitStoreOptions,
} from './http/express-rate-limit-options.js'
export type { HeaderTarget } from './http/header-target.js'
export type { StandardHeaders } from './http/headers.js'
export type {
  DenialHandler,
  KeyFunction,
  PerRequest,
  RateLimitOptions,
  RateLimitsOptions,
  RequestBehaviourOptions,
  RequestLimitOptions,
} from './http/options.js'
export { denialProblem, refusalProblem } from './http/problem.js'
export { type RateLimitMiddleware, rateLimit } from './http/rate-limit.js'
export {
  type LimiterStatus,
  type RateLimitStatusOptions,
  rateLimitStatus,
  type StatusLimiter,
} from './http/rate-limit-status.js'
export { type TellDecisionOptions, tellDecision } from './http/tell-decision.js'
export {
  type ExpressRateLimitCount,
  type ExpressRateLimitStore,
  toExpressRateLimitStore,
} from './http/to-express-rate-limit-store.js'
export type { WarningCode } from './http/warnings.js'
export type {
  BehaviourOptions,
  DecisionHook,
  OnStoreError,
  StoreErrorFunction,
  StoreErrorRule,
} from './limiter/behaviour-options.js'
export type { BreakerState, StoreHealth } from './limiter/breaker.js'
export type { CalendarOptions, CalendarWindow, Weekday } from './limiter/calendar-options.js'
export type { BatchMessage, BreakerMessage, DecisionMessage } from './limiter/channels.js'
export type {
  AllowedDecision,
  Decision,
  DegradedDecision,
  DeniedDecision,
  LimitDenial,
  LimitState,
} from './limiter/decision.js'
export type { Logger } from './limiter/failure-log.js'
export type { LeaseOptions } from './limiter/lease-options.js'
export { type HitOptions, Limiter } from './limiter/limiter.js'
export type { LimiterOptions, LimitOptions } from './limiter/limiter-options.js'
export { normalizeKey } from './limiter/normalize-key.js'
export type { Key, StoredKey } from './limiter/storage-key.js'
export { type Dashboard, type DashboardOptions, dashboard } from './operate/dashboard/dashboard.js'
export type { DashboardLimiter } from './operate/dashboard/managed-limits.js'
export { type InstrumentOptions, instrument } from './operate/metrics/instrument.js'
export type { Meter, MetricAttributes, MetricCallback, MetricOptions } from './operate/metrics/meter.js'
export { type Usage, type UsageBucket, type UsageOptions, usage } from './operate/usage.js'
export type { UsageSlice, UsageStore } from './stores/kept-usage.js'
export { MemoryStore, type MemoryStoreOptions } from './stores/memory-store.js'
export { MysqlStore } from './stores/mysql/mysql-store.js'
export type { MysqlStoreOptions } from './stores/mysql/options.js'
export type { SweepMessage } from './stores/publish-sweep.js'
export type { SqliteStoreOptions } from './stores/sqlite/options.js'
export { SqliteStore } from './stores/sqlite/sqlite-store.js'
export type {
  Algorithm,
  Batch,
  Calendar,
  CalendarUnit,
  Charge,
  FixedWindow,
  Hit,
  LeaseRequest,
  Policy,
  Reading,
  Refund,
  Refusal,
  Store,
  StoreInspection,
  SweepProgress,
  SweepResult,
  Verdict,
} from './stores/store.js'
export { StoreError, type StoreErrorCode } from './stores/store-error.js'
