import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the page claims, with the tests that are said to show it. */
const claims = readFileSync('docs/security.md', 'utf8')
  .split(/\n(?=\S)/)
  .filter((block) => block.startsWith('- '))
  .map((block) => {
    const [claim = ''] = block.split('\n')
    const tests = Array.from(
      block.matchAll(/^ {2}- `([\w./-]+\.ts)`, "(.+)"$/gm),
      ([, file = '', title = '']) => ({
        file,
        title,
      }),
    )
    return { claim, tests }
  })

test('every claim of the security page names a test', () => {
  expect(claims.length).toBeGreaterThan(25)
  expect(claims.filter(({ tests }) => tests.length === 0)).toEqual([])
})

test.each(claims.flatMap(({ tests }) => tests))('$file has the test: $title', ({ file, title }) => {
  const source = readFileSync(join('__tests__', file), 'utf8')
  expect([`'${title}'`, `"${title}"`, `\`${title}\``].some((quoted) => source.includes(quoted))).toBe(true)
})
