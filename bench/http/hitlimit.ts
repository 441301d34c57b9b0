import { hitlimit } from '@joint-ops/hitlimit'
import { mysqlStore } from '@joint-ops/hitlimit/stores/mysql'
import type { RequestHandler } from 'express'
import { createPool } from 'mysql2/promise'
import { clientOf } from './client-of.js'
import type { MakeMiddleware } from './http-contender.js'

export const mysql: MakeMiddleware = async (uri, { limit, windowSeconds }) =>
  hitlimit({
    limit,
    window: windowSeconds * 1000,
    key: clientOf,
    store: mysqlStore({ pool: createPool(uri) }),
  }) as RequestHandler
