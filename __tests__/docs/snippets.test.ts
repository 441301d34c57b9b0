import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Examples may show their lines farther to the right. */
const flat = (text: string): string => text.replaceAll(/^ +/gm, '')

const sources = readdirSync('examples')
  .filter((name) => name.endsWith('.ts'))
  .map((name) => flat(readFileSync(join('examples', name), 'utf8')))

/** What is shown is run: each stands word for word in an example, which has a test of its own. */
test.each(['metrics', 'migrating', 'quotas'])(
  'every snippet of docs/%s.md is a part of an example',
  (page) => {
    const text = readFileSync(`docs/${page}.md`, 'utf8')
    const snippets = Array.from(text.matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, snippet = '']) => snippet)
    expect(snippets).not.toEqual([])
    expect(snippets.filter((snippet) => !sources.some((source) => source.includes(flat(snippet))))).toEqual(
      [],
    )
  },
)
