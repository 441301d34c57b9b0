import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { MysqlStore, StoreError, toExpressRateLimitStore } from 'express-sql-rate-limit'
import { describeServers } from '../../servers/describe-servers.js'
import type { PrivateServer } from '../../servers/server.js'
import { startServer } from '../../servers/start-server.js'
import { createTestDatabase } from '../../servers/test-database.js'
import { appWith, portOf, serve } from '../serve.js'

const TIMEOUT_MS = 300
/** A loaded machine may be late to run a timer. */
const LATENESS_MS = 700
const CALLERS = 20

describeServers('express-rate-limit while the server is frozen', ({ kind }) => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await startServer(kind)
  }, 120_000)
  afterAll(() => server.stop())

  it('is answered in time, at once when that is known, and limits again when it is back', async () => {
    const database = await createTestDatabase(server)
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    await store.install()
    const codes: string[] = []
    const logger = {
      error: (error: unknown) => {
        if (error instanceof StoreError) codes.push(error.code)
      },
      warn() {},
    }
    const create = (name: string, passOnStoreError: boolean) =>
      rateLimit({
        windowMs: 3_600_000,
        limit: 5,
        passOnStoreError,
        logger,
        keyGenerator: (req) => String(req.query.key),
        store: toExpressRateLimitStore(store, { name, timeoutMs: TIMEOUT_MS }),
      })
    const open = portOf(await serve(appWith(express, create('open', true))))
    const closed = portOf(await serve(appWith(express, create('closed', false))))
    const ask = async (port: number, key: string): Promise<{ status: number; took: number }> => {
      const asked = performance.now()
      const { status } = await fetch(`http://127.0.0.1:${port}/?key=${key}`)
      return { status, took: performance.now() - asked }
    }
    const askMany = (port: number) =>
      Promise.all(Array.from({ length: CALLERS }, (_, i) => ask(port, `key-${i}`)))

    for (let i = 0; i < 5; i += 1) expect((await ask(open, 'used')).status).toBe(200)

    await server.signal('SIGSTOP')
    try {
      for (let round = 0; round < 4; round += 1) {
        const answers = [...(await askMany(open)), ...(await askMany(closed))]
        expect(Math.max(...answers.map(({ took }) => took))).toBeLessThan(TIMEOUT_MS + LATENESS_MS)
        expect(answers.map(({ status }) => status)).toEqual([
          ...Array(CALLERS).fill(200),
          ...Array(CALLERS).fill(500),
        ])
      }
      // By now nobody waits for it any more.
      codes.length = 0
      await askMany(open)
      expect(codes).toEqual(Array(CALLERS).fill('ERR_STORE_DOWN'))
    } finally {
      await server.signal('SIGCONT')
    }

    let status = 0
    for (const begin = performance.now(); status !== 429; ) {
      if (performance.now() - begin > 20_000) throw new Error('it does not limit again')
      status = (await ask(open, 'used')).status
    }
    await store.close()
    await database.close()
  }, 120_000)
})
