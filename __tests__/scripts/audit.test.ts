import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

// npm remembers advisories.
let cache: string
let registry: Server | undefined
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'audit-'))
})
afterEach(() => {
  rmSync(cache, { recursive: true })
  registry?.closeAllConnections()
  registry?.close()
})

/** A registry that knows of one vulnerability, or answers that it has no audits. */
async function serveRegistry(severity: string | null): Promise<string> {
  registry = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    if (severity === null || req.method !== 'POST') {
      res.writeHead(405).end()
      return
    }
    const body = Buffer.concat(chunks)
    const asked = Object.keys(JSON.parse(String(req.headers['content-encoding'] ? gunzipSync(body) : body)))
    const advisory = { id: 1, url: 'https://example.com/1', title: 'bad', severity, vulnerable_versions: '*' }
    res.setHeader('Content-Type', 'application/json')
    // What is not brought into an application is not asked for.
    res.end(
      JSON.stringify(
        asked.includes('lru-cache') && !asked.includes('jest') ? { 'lru-cache': [advisory] } : {},
      ),
    )
  })
  registry.listen(0, '127.0.0.1')
  await once(registry, 'listening')
  return `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`
}

const audit = (url: string): Promise<{ code: unknown; output: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, npm_config_registry: url, npm_config_cache: cache }
    execFile('node', ['scripts/audit.mjs'], { env }, (error, stdout) => {
      resolve({ code: error === null ? 0 : error.code, output: stdout })
    })
  })

test.each([
  ['high', 1, '1 of them high'],
  ['critical', 1, '1 of them high'],
  ['moderate', 0, '0 of them high'],
])('a dependency with a vulnerability that is %s ends with %d', async (severity, code, words) => {
  const result = await audit(await serveRegistry(severity))
  expect(result.output).toContain(`${severity}: lru-cache`)
  expect(result.output).toContain(words)
  expect(result.code).toBe(code)
})

test('a registry without audits fails nothing, and says so', async () => {
  const result = await audit(await serveRegistry(null))
  expect(result.output).toMatch(/^NOT AUDITED: .*not reachable \(.*405/)
  expect(result.code).toBe(0)
})

test('a registry that is not there fails nothing, and says so', async () => {
  const result = await audit('http://127.0.0.1:1/')
  expect(result.output).toMatch(/^NOT AUDITED: .*not reachable \(.+\)/)
  expect(result.code).toBe(0)
})
