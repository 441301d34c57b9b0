import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const docs = readdirSync('docs').filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'examples/README.md', ...docs.map((name) => `docs/${name}`)]

/** What a page can be entered at: its headings, as GitHub names them, and what it names itself. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')
  const seen = new Map<string, number>()
  const headings = Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading = '']) => {
    const name = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const before = seen.get(name) ?? 0
    seen.set(name, before + 1)
    return before === 0 ? name : `${name}-${before}`
  })
  return [...headings, ...Array.from(text.matchAll(/<a id="([^"]+)">/g), ([, id = '']) => id)]
}

test.each(pages)('every link of %s leads somewhere', (page) => {
  const text = readFileSync(page, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')
  const links = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link)
  const dead = links.filter((link) => {
    if (/^https?:/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : normalize(join(dirname(page), path))
    if (!existsSync(target)) return true
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor)
  })
  expect(dead).toEqual([])
})

test('the index leads to every page', () => {
  const index = readFileSync('docs/README.md', 'utf8')
  expect(docs.filter((name) => name !== 'README.md' && !index.includes(`(${name})`))).toEqual([])
})
