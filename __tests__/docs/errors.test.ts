import { readFileSync } from 'node:fs'

const page = readFileSync('docs/errors.md', 'utf8')
const [, union = ''] = /export type StoreErrorCode =((?:\s+\| '\w+')+)/.exec(
  readFileSync('lib/stores/store-error.ts', 'utf8'),
) as RegExpExecArray
const codes = Array.from(union.matchAll(/'(\w+)'/g), ([, code = '']) => code)

test('the page has a section for each code of a StoreError, and for no other', () => {
  const sections = Array.from(page.matchAll(/^## (\w+)$/gm), ([, code]) => code)
  expect(sections).toEqual(codes)
  expect(codes.length).toBeGreaterThan(5)
})

test.each(codes)('%s says what it means and what to do, and is in the table', (code) => {
  const anchor = code.toLowerCase().replaceAll('_', '-')
  const section = page.split(`<a id="${anchor}"></a>\n\n## ${code}\n`)[1]?.split('\n## ')[0]
  expect(section).toContain('**What it means.**')
  expect(section).toContain('**What to do.**')
  expect(page).toContain(`| [${code}](#${anchor})`)
})
