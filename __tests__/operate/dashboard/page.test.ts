import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { Limiter, SqliteStore } from 'express-sql-rate-limit'
import type { Locator, Page } from 'playwright-core'
import { createApp } from '../../../examples/app.js'
import { describeBrowser } from '../../browser/describe-browser.js'
import { portOf, serve } from '../../http/serve.js'
import { mount } from './mount.js'

/** Pictures of the page, to look at after a run. */
const ARTEFACTS = join(__dirname, '../../../test-artefacts')
const SECONDS = 900
/** A page on a busy machine. */
const PATIENCE_MS = 60_000

const hasFocus = async (page: Page, element: Locator): Promise<boolean> =>
  (await element.and(page.locator(':focus')).count()) === 1

/** The contrast of two colours such as `#1b212b`, 1 to 21 (WCAG 2.2, "relative luminance"). */
function contrast(a: string, b: string): number {
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}

describeBrowser('the page', (openPage) => {
  /** What the page must never do, in any test. */
  const faults: string[] = []

  const open = async (server: Server, path: string, options: Parameters<typeof openPage>[0] = {}) => {
    const page = await openPage({ viewport: { width: 1280, height: 900 }, ...options })
    page.setDefaultTimeout(PATIENCE_MS)
    const origin = `http://127.0.0.1:${portOf(server)}`
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('dialog', (dialog) => faults.push(`a dialog: ${dialog.message()}`))
    page.on('request', (request) => {
      if (!request.url().startsWith(origin)) faults.push(`a request to ${request.url()}`)
    })
    page.on('console', (message) => {
      // Chromium tells of every refusal itself.
      if (message.type() === 'error' && !/status of (429|503)|ERR_/.test(message.text()))
        faults.push(message.text())
    })
    await page.goto(origin + path)
    await page.locator('#connection[data-state=live]').waitFor()
    return page
  }

  const openExample = async (options?: Parameters<typeof openPage>[0]) => {
    const store = new SqliteStore({ filename: ':memory:' })
    const app = createApp(store)
    const page = await open(await serve(app as never), app.locals.operatorPath, options)
    closings.push(async () => {
      app.locals.dashboard.close()
      await store.close()
    })
    return { page, store }
  }
  const closings: (() => Promise<void>)[] = []

  afterEach(async () => {
    for (const close of closings.splice(0)) await close()
    expect(faults.splice(0)).toEqual([])
  })

  const card = (page: Page, name: string) => page.getByRole('region', { name, exact: true })
  const tableOf = (page: Page, label: string) => page.getByRole('table', { name: label })

  test('shows what thirty clicks did: three answers with 200, then 429 with a wait', async () => {
    const { page } = await openExample()
    const button = page.getByRole('button', { name: 'Ping: send 1', exact: true })
    for (let i = 0; i < 30; i += 1) await button.click()
    const answers = page.getByRole('list', { name: 'Answers to Ping' }).getByRole('listitem')
    await answers.nth(29).waitFor()
    const texts = await answers.allTextContents()
    expect(texts.slice(0, 3)).toEqual(['200 2 left', '200 1 left', '200 0 left'])
    expect(texts.slice(3).every((text) => /^429 \d+ s$/.test(text))).toBe(true)
    expect(texts).toHaveLength(30)
    await page.getByText(/^3 allowed, 27 denied\. Last answer: 429, Retry-After \d+ seconds\.$/).waitFor()

    const busiest = tableOf(page, 'Busiest keys of ping, last 5 minutes')
    await busiest.getByRole('row', { name: /^alice 30 3 of 3 in \d+ s/ }).waitFor()
    const denied = tableOf(page, 'Most denied keys of ping, last 5 minutes')
    await denied.getByRole('row', { name: /^alice 27 3 of 3 in \d+ s/ }).waitFor()
    await card(page, 'ping').getByText('27 total').waitFor()
    await card(page, 'global').getByText('30 total').waitFor()
  }, 120_000)

  test('a key is reset with the keyboard alone, and the focus comes back', async () => {
    const { page } = await openExample()
    await page.getByRole('button', { name: 'Ping: send 10' }).click()
    const reset = tableOf(page, 'Busiest keys of ping, last 5 minutes').getByRole('button', {
      name: 'Reset alice',
    })
    await reset.waitFor()
    await page.getByRole('textbox', { name: 'Key' }).first().focus()
    for (let presses = 0; presses < 60; presses += 1) {
      if (await hasFocus(page, reset)) break
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Reset a key of ping?' })
    await dialog.waitFor()
    await dialog.getByText('alice', { exact: true }).waitFor()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('status').filter({ hasText: 'alice in ping is reset.' }).waitFor()
    expect(await hasFocus(page, reset)).toBe(true)
    await page.getByRole('button', { name: 'Ping: send 1', exact: true }).click()
    await page.getByText(/^4 allowed, 7 denied\. Last answer: 200, 2 left\.$/).waitFor()
  }, 120_000)

  test('a search finds a key in every limit, and a block denies it until it is reset', async () => {
    const { page } = await openExample()
    await page.locator('#search').getByLabel('Key').fill('alice')
    await page.locator('#search').getByLabel('Limit').selectOption('ping')
    await page.getByRole('button', { name: 'Find' }).click()
    const found = tableOf(page, 'Limits for the key alice')
    await found.getByRole('row', { name: /^ping 0 of 3 now/ }).waitFor()

    const block = found.getByRole('button', { name: 'Block ping' })
    await block.click()
    await page.keyboard.press('Escape')
    expect(await hasFocus(page, block)).toBe(true)
    await block.click()
    await page.getByRole('dialog').getByLabel('For').selectOption('15 minutes')
    await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
    await found.getByRole('row', { name: /^ping 0 of 3 in 1[45] min/ }).waitFor()
    await page.getByRole('button', { name: 'Ping: send 1', exact: true }).click()
    await page.getByText(/^0 allowed, 1 denied\./).waitFor()
  }, 120_000)

  test('who may only look finds no buttons for more', async () => {
    const { app, ping } = mount({ authorize: () => 'read' })
    await ping.hit('anna')
    const page = await open(await serve(app as never), '/limits/')
    await page.getByText('Read only').waitFor()
    await tableOf(page, 'Busiest keys of ping, last 5 minutes')
      .getByRole('row', { name: /^anna 1/ })
      .waitFor()
    expect(await page.getByRole('button').allTextContents()).toEqual(['Find'])
  }, 120_000)

  test('hostile keys are text, and their invisible characters are shown', async () => {
    const { app, login } = mount()
    const keys = ['<script>alert(1)</script>', '<img src=x onerror=alert(2)>', '\u202Etxt.exe', 'a\0b']
    for (const key of keys) await login.hit(key)
    await login.hit('y'.repeat(10_000))
    const page = await open(await serve(app as never), '/limits/', { viewport: { width: 360, height: 800 } })
    const cells = tableOf(page, 'Busiest keys of login, last 5 minutes').getByRole('cell').locator('bdi')
    await cells.nth(4).waitFor()
    const shown = await cells.allTextContents()
    expect(shown.slice().sort()).toEqual(
      [
        '<script>alert(1)</script>',
        '<img src=x onerror=alert(2)>',
        '\\u{202e}txt.exe',
        'a\\u{0}b',
        `${'y'.repeat(200)}…`,
      ].sort(),
    )
    expect(await page.locator('main script, main img').count()).toBe(0)
    // What is cut cannot be looked up.
    const row = page.getByRole('row', { name: /^y+…/ }).first()
    expect(await row.getByRole('button', { name: /^Reset/ }).isDisabled()).toBe(true)
    const scrollWidth = await page.evaluate('document.documentElement.scrollWidth')
    expect(scrollWidth).toBeLessThanOrEqual(360)
  }, 120_000)

  test.each(['light', 'dark'] as const)(
    'is readable in %s: text on what is behind it has the contrast that WCAG asks for',
    async (colorScheme) => {
      const { app } = mount()
      const page = await open(await serve(app as never), '/limits/', { colorScheme })
      const colour = (name: string) =>
        page.evaluate<string>(`getComputedStyle(document.documentElement).getPropertyValue('${name}').trim()`)
      const ratio = async (a: string, b: string): Promise<number> =>
        contrast(await colour(a), await colour(b))
      for (const behind of ['--card', '--page', '--raised']) {
        for (const text of ['--text', '--muted', '--accent'])
          expect(await ratio(text, behind)).toBeGreaterThanOrEqual(4.5)
      }
      expect(await ratio('--on-accent', '--accent')).toBeGreaterThanOrEqual(4.5)
      for (const mark of ['--allowed', '--denied', '--degraded', '--good', '--focus', '--strong-line'])
        expect(await ratio(mark, '--card')).toBeGreaterThanOrEqual(3)
      expect(await colour('--page')).toBe(colorScheme === 'light' ? '#f5f6f8' : '#0f1319')
    },
    120_000,
  )

  test('what a chart shows is told in words, and in a table behind it', async () => {
    const { app, ping } = mount()
    for (let i = 0; i < 4; i += 1) await ping.hit('anna')
    const page = await open(await serve(app as never), '/limits/')
    const chart = card(page, 'ping').getByRole('img')
    await page.locator('.chart[aria-label*=": 3 allowed, 1 denied, 0 degraded."]').waitFor()
    expect(await chart.getAttribute('aria-label')).toMatch(
      /^Decisions of ping per second over the last 15 minutes: 3 allowed/,
    )
    await card(page, 'ping').getByText('Figures as a table').click()
    const figures = page.getByRole('table', { name: 'Decisions of ping by minute' })
    await figures.getByRole('row', { name: /^\d\d:\d\d 3 1 0$/ }).waitFor()
    expect(await figures.getByRole('columnheader').allTextContents()).toEqual([
      'Minute',
      'Allowed',
      'Denied',
      'Degraded',
    ])
  }, 120_000)

  test('says when the connection is lost, and when it is back', async () => {
    const { app, page: dashboardPage } = mount()
    const server = await serve(app as never)
    const page = await open(server, '/limits/')
    dashboardPage.close()
    await page.locator('#connection[data-state=lost]').waitFor()
    await page.getByRole('status').filter({ hasText: 'The connection to the server is lost.' }).waitFor()
    await page.getByText('Connection lost', { exact: true }).waitFor()
  }, 120_000)

  test('a panel that does not load takes nothing else with it', async () => {
    const { app } = mount({ panels: ['/nowhere.js'] })
    const page = await open(await serve(app as never), '/limits/')
    await card(page, 'ping').waitFor()
    expect(await page.locator('#panels section').count()).toBe(0)
    expect(faults.splice(0).join()).toMatch(/nowhere\.js|404/)
  }, 120_000)

  describe('a quarter of an hour of traffic', () => {
    /** Lives through it in a moment, with one clock for the store and for what is recorded; then it goes on. */
    async function live() {
      let seed = 1
      const random = (): number => {
        seed = (seed * 48_271) % 2_147_483_647
        return seed / 2_147_483_647
      }
      const store = new SqliteStore({ filename: ':memory:', clock: () => Date.now(), sweepSeconds: false })
      const limit = (name: string, limit: number, windowSeconds: number) =>
        new Limiter({ store, name, limit, windowSeconds, timeoutMs: 60_000 })
      const api = limit('api', 600, 60)
      const login = limit('login', 5, 300)
      const exports = limit('export', 3, 3600)
      const webhook = limit('webhook', 120, 60)
      const mounted = mount({ store, limiters: [api, login, exports, webhook] })
      const wave = (second: number, period: number): number => 1 + Math.sin((second / period) * 2 * Math.PI)
      const hitFor = async (second: number): Promise<void> => {
        const hits: Promise<unknown>[] = []
        const times = (count: number, hit: () => Promise<unknown>): void => {
          for (let i = random(); i < count; i += 1) hits.push(hit())
        }
        const customers = [
          'acme',
          'acme',
          'acme',
          'globex',
          'globex',
          'initech',
          'umbrella',
          'hooli',
          'stark',
          'wayne',
        ]
        const customer = () => `key:${customers[Math.floor(random() * customers.length)]}`
        times(6 + 4 * wave(second, 420) + 4 * random(), () => api.hit(customer()))
        if (second > 640) times(5 * random() * wave(second, 170), () => login.hit('login:203.0.113.9'))
        times(0.4, () => login.hit(`login:198.51.100.${Math.floor(random() * 60)}`))
        times(0.05, () => exports.hit(`user:${Math.floor(random() * 9)}`))
        times(1.5 * wave(second, 260), () => webhook.hit(`hook:${Math.floor(random() * 4)}`))
        await Promise.all(hits)
      }
      const realNow = () => performance.timeOrigin + performance.now()
      let now = realNow() - SECONDS * 1000
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => now)
      let second = 0
      // Living takes a while, too.
      for (; now < realNow(); second += 1) {
        await hitFor(second)
        now += 1000
      }
      clock.mockRestore()
      await store.sweep()
      const timer = setInterval(() => {
        second += 1
        void hitFor(second)
      }, 1000)
      closings.push(async () => {
        clearInterval(timer)
        mounted.page.close()
        await store.close()
      })
      return mounted
    }

    test.each([
      ['light', { colorScheme: 'light', viewport: { width: 1280, height: 1000 } }],
      ['dark', { colorScheme: 'dark', viewport: { width: 1280, height: 1000 } }],
      [
        'phone',
        { colorScheme: 'light', viewport: { width: 360, height: 780 }, deviceScaleFactor: 2, isMobile: true },
      ],
    ] as const)(
      'fits its window: %s',
      async (name, options) => {
        const { app } = await live()
        const page = await open(await serve(app as never), '/limits/', options)
        await tableOf(page, 'Most denied keys of login, last 5 minutes')
          .getByRole('row', { name: /^login:203/ })
          .waitFor()
        await page
          .locator('#store')
          .getByText(/events · /)
          .waitFor()
        // The last seconds are drawn when five of them are complete.
        await page.waitForTimeout(7_000)
        const scrollWidth = await page.evaluate('document.documentElement.scrollWidth')
        expect(scrollWidth).toBeLessThanOrEqual(options.viewport.width)
        mkdirSync(ARTEFACTS, { recursive: true })
        await page.screenshot({ path: join(ARTEFACTS, `dashboard-${name}.png`) })
      },
      120_000,
    )
  })
})
