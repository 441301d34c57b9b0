import { MemoryStore, MysqlStore, rateLimit, SqliteStore, type Store } from 'express-sql-rate-limit'
import { clientOf } from './client-of.js'
import type { MakeMiddleware } from './http-contender.js'

const limited =
  (makeStore: (place: string) => Store): MakeMiddleware =>
  async (place, { limit, windowSeconds }) => {
    const store = makeStore(place)
    await store.install()
    return rateLimit({ store, name: 'http', limit, windowSeconds, keyFn: clientOf })
  }

export const mysql = limited((uri) => new MysqlStore({ uri }))
export const sqlite = limited((filename) => new SqliteStore({ filename }))
export const memory = limited(() => new MemoryStore())
