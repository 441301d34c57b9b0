import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { CHROMIUM_VARIABLE, type ChromiumInfo } from './obtain-chromium.js'

/** Opens a page, with a window and preferences of its own, and closes it after the test. */
export type OpenPage = (options?: BrowserContextOptions) => Promise<Page>

/** A `describe` with a real browser, or one skipped test when this run has none. */
export function describeBrowser(title: string, body: (openPage: OpenPage) => void): void {
  const found = process.env[CHROMIUM_VARIABLE]
  if (!found) {
    test.skip(`${title}: no browser in this run`, () => {})
    return
  }
  const { executable, environment, version } = JSON.parse(found) as ChromiumInfo
  describe(`${title} in ${version}`, () => {
    let browser: Browser
    const pages: Page[] = []

    beforeAll(async () => {
      browser = await chromium.launch({
        executablePath: executable,
        env: { ...process.env, ...environment } as Record<string, string>,
        // Its sandbox does not work as root, and all it opens is ours.
        chromiumSandbox: false,
        args: ['--disable-gpu', '--force-color-profile=srgb'],
      })
    }, 120_000)
    afterEach(async () => {
      for (const page of pages.splice(0)) await page.context().close()
    })
    afterAll(() => browser?.close())

    body(async (options) => {
      const context = await browser.newContext(options)
      const page = await context.newPage()
      pages.push(page)
      return page
    })
  })
}
