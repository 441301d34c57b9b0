import { helpText, parseOptions } from '../../bench/options.js'
import type { Section } from '../../bench/section.js'

const section = (id: string): Section => ({
  id,
  title: `Title of ${id}`,
  steps: () => 1,
  run: () => Promise.reject(new Error('not run here')),
})
const sections = ['one', 'two', 'three'].map(section)
const idsOf = (...args: string[]): string[] => parseOptions(args, sections).sections.map(({ id }) => id)

test('everything runs unless some sections are named, by commas or one by one', () => {
  expect(parseOptions([], sections)).toEqual({ help: false, quick: false, sections })
  expect(idsOf('--only', 'three,one')).toEqual(['one', 'three'])
  expect(idsOf('--only', 'two', '--only=three')).toEqual(['two', 'three'])
})

test('a section or an option that does not exist is an error that says so', () => {
  expect(() => idsOf('--only', 'four')).toThrow(/one, two, three.*`four`/)
  expect(() => idsOf('--fast')).toThrow(/--fast/)
  expect(() => idsOf('one')).toThrow(/'one'/)
})

test('the help names every section', () => {
  for (const { id, title } of sections) expect(helpText(sections)).toMatch(new RegExp(`${id} +${title}`))
})
