import { readFileSync } from 'node:fs'

/** Writing the page takes a compiler from the registry, so what is compared is what was forgotten most likely. */
test('the API has a section for every export, and for nothing else', () => {
  const names = Array.from(
    readFileSync('lib/index.ts', 'utf8').matchAll(/export (?:type )?\{([^}]*)\}/g),
    ([, list = '']) => list.split(',').map((name) => name.replace('type ', '').trim()),
  ).flat()
  const sections = Array.from(
    readFileSync('docs/api.md', 'utf8').matchAll(/^### (\w+)/gm),
    ([, name]) => name,
  )
  expect(sections.toSorted()).toEqual(names.filter((name) => name !== '').toSorted())
})
