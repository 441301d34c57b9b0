import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** What each room may import, lower ones only: a request walks http → limiter → store, a decision walks back. */
const ROOMS: Record<string, readonly string[]> = {
  operate: ['operate', 'http', 'limiter', 'stores'],
  http: ['http', 'limiter', 'stores'],
  limiter: ['limiter', 'stores'],
  stores: ['stores'],
}

/** Packages that a room may load when it is imported; drivers and Express are the application's. */
const PACKAGES: Record<string, readonly string[]> = {
  operate: ['http-problem-details', 'lru-cache'],
  http: ['http-problem-details', 'ipaddr.js', 'lru-cache', 'structured-headers'],
  limiter: ['lru-cache', 'luxon'],
  stores: ['lru-cache'],
}

/** The command line is a program of its own: nothing that an application imports leads to it. */
const PROGRAM = 'operate/cli/'

interface Import {
  readonly from: string
  readonly to: string
  readonly typeOnly: boolean
}

const files = readdirSync('lib', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const sources = new Map(files.map((name) => [name, readFileSync(join('lib', name), 'utf8')]))
const imports: Import[] = files.flatMap((from) =>
  Array.from(
    (sources.get(from) as string).matchAll(/^(?:import|export) ([^'=();]*?)\bfrom '([^']+)'/gm),
    ([, names = '', target = '']) => ({
      from,
      to: target.startsWith('.') ? normalize(join(dirname(from), target.replace(/\.js$/, '.ts'))) : target,
      typeOnly: names.startsWith('type ') || /^\{(\s*type [^,}]+,?)+\s*\}/.test(names),
    }),
  ),
)
const roomOf = (file: string): string => file.split('/')[0] as string
const isOurs = ({ to }: Import): boolean => /\.c?[tj]s$/.test(to) && to.includes('/')

test('no room imports a higher one', () => {
  const wrong = imports.filter((each) => {
    const allowed = ROOMS[roomOf(each.from)]
    return isOurs(each) && allowed !== undefined && !allowed.includes(roomOf(each.to))
  })
  expect(wrong).toEqual([])
})

test('importing the package loads no driver and no Express', () => {
  const wrong = imports.filter((each) => {
    if (isOurs(each) || each.typeOnly || each.to.startsWith('node:')) return false
    if (each.from.startsWith(PROGRAM)) return false
    return !(PACKAGES[roomOf(each.from)] ?? []).includes(each.to)
  })
  expect(wrong).toEqual([])
})

test('what the package works with, but does not need, is imported nowhere, not even for its types', () => {
  const wrong = imports.filter(({ to }) =>
    /^(express-rate-limit|@opentelemetry\/|prom-client|fastify)/.test(to),
  )
  expect(wrong).toEqual([])
})

test('nothing imports the command line', () => {
  const wrong = imports.filter((each) => each.to.startsWith(PROGRAM) && !each.from.startsWith(PROGRAM))
  expect(wrong).toEqual([])
})

test('no two files need each other', () => {
  const edges = new Map<string, string[]>()
  for (const each of imports) {
    if (isOurs(each) && !each.typeOnly) edges.set(each.from, [...(edges.get(each.from) ?? []), each.to])
  }
  const cycleFrom = (file: string, path: string[]): string[] | null => {
    if (path.includes(file)) return [...path, file]
    for (const next of edges.get(file) ?? []) {
      const cycle = cycleFrom(next, [...path, file])
      if (cycle !== null) return cycle
    }
    return null
  }
  expect(files.map((file) => cycleFrom(file, [])).filter((cycle) => cycle !== null)).toEqual([])
})

test('index.ts only re-exports', () => {
  const statements = (sources.get('index.ts') as string).replace(/\{[^}]*\}/g, '{}').split('\n')
  expect(statements.filter((line) => line !== '' && !/^export (type )?\{\} from '/.test(line))).toEqual([])
})

test('every file can be read at a sitting', () => {
  const long = files.filter(
    (file) => file !== 'stores/schema.ts' && (sources.get(file) as string).split('\n').length > 250,
  )
  expect(long).toEqual([])
})
