/* What stands around the snippets of the documentation. Not a part of any other program: tsconfig.json leaves it out. */

declare namespace Express {
  interface Request {
    user: { id: string; isAdmin: boolean; isSupport: boolean; plan: { limit: number } }
  }
}

declare const app: import('express').Express
declare const server: import('node:http').Server
declare const pool: import('mysql2').Pool
declare const store: import('express-sql-rate-limit').Store
declare const limiter: import('express-sql-rate-limit').Limiter
declare const globalLimit: import('express-sql-rate-limit').RateLimitMiddleware
declare const loginLimit: import('express-sql-rate-limit').RateLimitMiddleware

declare const plan: import('express-sql-rate-limit').RateLimitMiddleware
declare const decision: import('express-sql-rate-limit').Decision
declare const req: import('express').Request
declare const reply: import('fastify').FastifyReply
declare const userId: string

declare const login: import('express').RequestHandler
declare const claim: import('express').RequestHandler
declare const requireCaptcha: import('express').RequestHandler
declare const loginLimits: (
  store: import('express-sql-rate-limit').Store,
  options: { underAttack: import('express').RequestHandler },
) => import('express').RequestHandler[]

declare const userOf: (req: import('express').Request) => { id: string }
declare const planOf: (req: import('express').Request) => { hourly: number }
declare const accountOf: (req: import('express').Request) => string
declare const decisions: { inc(labels: Record<string, string>): void }
declare const KEY_SECRET: string
