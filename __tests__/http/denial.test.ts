import type { RequestHandler } from 'express'
import type { DeniedDecision } from 'express-sql-rate-limit'
import request from 'supertest'
import { answerDenial, type DenialOptions } from '../../lib/http/denial.js'
import { QUOTA_EXCEEDED } from '../../lib/http/problem.js'
import { appWith, exchange, expressVersions, serve } from './serve.js'
import { decide, policyOf } from './telling.js'

const ping = policyOf({ name: 'ping', limit: 3, windowSeconds: 60 })
const denied = decide([ping, 3, 42, 42]) as DeniedDecision
const DETAIL = 'Limit "ping" allows 3 requests per 60 seconds. Retry in 42 seconds.'

/** A middleware that answers every request with a denial. */
const denying = (options: Partial<DenialOptions> = {}, decision = denied): RequestHandler =>
  function denying(req, res, next) {
    const whole = { statusCode: 429, message: undefined, problemType: QUOTA_EXCEEDED, ...options }
    answerDenial(req, res, decision, whole).catch(next)
  }

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'
const PROBLEM = 'application/problem+json'
const HTML = 'text/html; charset=utf-8'
const TEXT = 'text/plain; charset=utf-8'

describe.each(expressVersions)('on Express %s', (_, express) => {
  describe('the built-in answer', () => {
    test.each<[string, string | undefined, string]>([
      ['no preference at all', undefined, PROBLEM],
      ['an empty one', '', PROBLEM],
      ['anything, as curl', '*/*', PROBLEM],
      ['problem documents', 'application/problem+json', PROBLEM],
      ['JSON', 'application/json', PROBLEM],
      ['any application type', 'application/*', PROBLEM],
      ['JSON first, as axios', 'application/json, text/plain, */*', PROBLEM],
      ['JSON last among equals, as generated clients', 'text/plain, application/json, text/json', PROBLEM],
      ['JSON before HTML', 'application/json, text/html', PROBLEM],
      ['HTML before JSON, as equals', 'text/html, application/json', PROBLEM],
      ['JSON rather than HTML', 'text/html;q=0.5, application/json;q=0.6', PROBLEM],
      ['problem documents but no other JSON', 'text/html;q=0.5, application/problem+json', PROBLEM],
      ['a picture, and is not told 406', 'image/png', PROBLEM],
      ['nothing, and is not told 406', '*/*;q=0', PROBLEM],
      ['nonsense', ',;=q"\\', PROBLEM],
      ['a page, as a browser', BROWSER, HTML],
      ['a page', 'text/html', HTML],
      ['a page, or whatever there is', 'text/html, */*', HTML],
      ['a page rather than JSON', 'application/json;q=0.5, text/html', HTML],
      ['a page or text, in this order', 'text/html, text/plain', HTML],
      ['text', 'text/plain', TEXT],
      ['text rather than JSON', 'application/json;q=0.1, text/plain;q=0.2', TEXT],
      ['any text', 'text/*', TEXT],
      ['text and no JSON', 'text/plain, application/json;q=0, */*;q=0.1', TEXT],
    ])('to a client that wants %s', async (_, accept, type) => {
      const call = request(appWith(express, denying())).get('/')
      const answer = await (accept === undefined ? call : call.set('Accept', accept))
      expect(answer.status).toBe(429)
      expect(answer.headers).toMatchObject({
        'content-type': type,
        'content-language': 'en',
        'content-length': String(Buffer.byteLength(answer.text)),
        'cache-control': 'no-store',
        vary: 'Accept',
      })
    })

    test('is a problem document, a text or a page, to the letter', async () => {
      const app = appWith(express, denying())
      const get = async (accept: string) => (await request(app).get('/').set('Accept', accept)).text
      expect(JSON.parse(await get('*/*'))).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Request cannot be satisfied as assigned quota has been exceeded',
        status: 429,
        detail: DETAIL,
        'violated-policies': ['ping'],
      })
      expect(await get('text/plain')).toBe(`${DETAIL}\n`)
      expect(await get(BROWSER)).toBe(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Too Many Requests</title>
</head>
<body>
<p>Limit &quot;ping&quot; allows 3 requests per 60 seconds. Retry in 42 seconds.</p>
</body>
</html>
`)
    })

    test('lets no name become markup', async () => {
      const policy = policyOf({ name: `<script src='//x'>&amp;`, limit: 1 })
      const app = appWith(express, denying({}, decide([policy, 1, 9, 9]) as DeniedDecision))
      const page = (await request(app).get('/').set('Accept', BROWSER)).text
      expect(page).toContain('Limit &quot;&lt;script src=&#39;//x&#39;&gt;&amp;amp;&quot; allows')
      expect(page).not.toContain('<script')
    })

    test.each([PROBLEM, 'text/html', 'text/plain'])(
      'has the same headers and no body for HEAD, as %s',
      async (accept) => {
        const server = await serve(appWith(express, denying()))
        const send = (method: string) =>
          exchange(
            server,
            `${method} / HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`,
          )
        const parts = async (method: string) => {
          const [head = '', body = ''] = (await send(method)).split('\r\n\r\n')
          return { fields: head.split('\r\n').filter((line) => !line.startsWith('Date')), body }
        }
        const [get, head] = [await parts('GET'), await parts('HEAD')]
        expect(head).toEqual({ fields: get.fields, body: '' })
        expect(get.body).not.toBe('')
      },
    )

    test('adds to what the response varies by, and replaces what was said of type and caching', async () => {
      const app = appWith(
        express,
        (_req, res, next) => {
          res
            .set({ Vary: 'Origin', 'Cache-Control': 'public, max-age=600', 'Content-Type': 'text/css' })
            .status(201)
          next()
        },
        denying(),
      )
      const { headers } = await request(app).get('/').expect(429)
      expect(headers).toMatchObject({
        vary: 'Origin, Accept',
        'cache-control': 'no-store',
        'content-type': PROBLEM,
      })
    })
  })

  describe('statusCode and problemType', () => {
    test('are those of the response and of the document', async () => {
      const app = appWith(express, denying({ statusCode: 503, problemType: 'https://example.com/busy' }))
      const answer = await request(app).get('/').expect(503)
      expect(answer.body).toMatchObject({ type: 'https://example.com/busy', status: 503, detail: DETAIL })
      const page = await request(app).get('/').set('Accept', BROWSER).expect(503)
      expect(page.text).toContain('<title>Service Unavailable</title>')
    })

    test('about:blank has the title of the status', async () => {
      const app = appWith(express, denying({ statusCode: 403, problemType: 'about:blank' }))
      const answer = await request(app).get('/').expect(403)
      expect(answer.body).toMatchObject({ type: 'about:blank', title: 'Forbidden', status: 403 })
    })

    test('a status without a name has a page too', async () => {
      const app = appWith(express, denying({ statusCode: 420 }))
      const page = await request(app).get('/').set('Accept', BROWSER).expect(420)
      expect(page.text).toMatch(/<title>Request cannot be satisfied/)
    })
  })

  describe('a message', () => {
    test.each<[string, unknown, string, string]>([
      ['a text, as Express sends it', 'Slow down', HTML, 'Slow down'],
      ['an empty text', '', HTML, ''],
      ['an object', { error: 'slow down' }, 'application/json; charset=utf-8', '{"error":"slow down"}'],
      ['an array', ['slow', 'down'], 'application/json; charset=utf-8', '["slow","down"]'],
      ['a number, which is no status', 404, 'application/json; charset=utf-8', '404'],
      ['false', false, 'application/json; charset=utf-8', 'false'],
    ])('is %s', async (_, message, type, body) => {
      const forms = [message, () => message, async () => message]
      for (const each of forms) {
        const app = appWith(express, denying({ message: each, statusCode: 430 }))
        const answer = await request(app).get('/').set('Accept', BROWSER)
        expect({ status: answer.status, text: answer.text }).toEqual({ status: 430, text: body })
        expect(answer.headers).toMatchObject({ 'content-type': type, 'cache-control': 'no-store' })
        expect(app.errors).toEqual([])
      }
    })

    test('keeps the type that the application gave it', async () => {
      const message = (_req: unknown, res: { type(name: string): void }) => {
        res.type('text/plain')
        return 'Slow down'
      }
      const answer = await request(appWith(express, denying({ message })))
        .get('/')
        .expect(429, 'Slow down')
      expect(answer.headers['content-type']).toBe(TEXT)
    })

    test('is asked for with the request, the response and the decision', async () => {
      const message = jest.fn((req, res, decision) => `${req.path} ${res.headersSent} ${decision.policy}`)
      await request(appWith(express, denying({ message })))
        .get('/x')
        .expect(429, '/x false ping')
      expect(message).toHaveBeenCalledTimes(1)
    })

    test('has no body for HEAD', async () => {
      const answer = await request(appWith(express, denying({ message: 'Slow down' })))
        .head('/')
        .expect(429)
      expect(answer.text ?? '').toBe('')
      expect(answer.headers['content-length']).toBe('9')
    })

    test.each<[string, unknown]>([
      ['a function without a result', () => {}],
      ['an async function without a result', async () => undefined],
    ])('that is %s leaves the built-in answer', async (_, message) => {
      const answer = await request(appWith(express, denying({ message, statusCode: 430 })))
        .get('/')
        .expect(430)
      expect(answer.body).toMatchObject({ status: 430, detail: DETAIL })
    })

    const failure = new Error('no template')
    test.each<[string, unknown]>([
      [
        'throws',
        () => {
          throw failure
        },
      ],
      ['rejects', () => Promise.reject(failure)],
    ])('that %s is an error for the application, and sends nothing', async (_, message) => {
      const app = appWith(express, denying({ message }))
      await request(app).get('/').expect(500, { error: 'Error: no template' })
      expect(app.errors).toEqual([failure])
    })

    test('that cannot be JSON is an error for the application', async () => {
      const app = appWith(express, denying({ message: { size: 1n } }))
      await request(app).get('/').expect(500)
      expect(app.errors[0]).toBeInstanceOf(TypeError)
    })

    test('hazard 117: is not sent when the function or another middleware answered meanwhile', async () => {
      const app = appWith(
        express,
        denying({
          message: async (_req: unknown, res: { status(code: number): { send(body: string): void } }) => {
            res.status(402).send('pay')
            return 'Slow down'
          },
        }),
      )
      await request(app).get('/').expect(402, 'pay')
      expect(app.errors).toEqual([])
    })
  })
})
