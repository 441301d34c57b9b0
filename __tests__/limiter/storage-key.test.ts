import { type Key, Limiter, MemoryStore, type Policy } from 'express-sql-rate-limit'
import fc from 'fast-check'
import { storageKey } from '../../lib/limiter/storage-key.js'

const store = new MemoryStore({ sweepSeconds: false })
const { policy } = new Limiter({ store, limit: 1, windowSeconds: 60 })
const policyOf = (options: Partial<Policy> = {}): Policy => ({ ...policy, ...options })
const stored = (key: Key): string => storageKey(policyOf(), key)

describe('what is stored', () => {
  test('a text is readable after its name', () => {
    expect(storageKey(policyOf({ name: 'login' }), '203.0.113.9')).toBe('login:203.0.113.9')
  })

  test('parts are kept apart as JSON', () => {
    expect(stored(['a:b', 'c'])).toBe('default["a:b","c"]')
  })

  test('a text that is not well-formed is escaped, and still readable', () => {
    expect(stored('a\ud800')).toBe('default"a\\ud800"')
  })

  test("a fixed window's length is part of its key, as its counter depends on it", () => {
    const fixed = (windowSeconds: number) => policyOf({ algorithm: 'fixed-window', windowSeconds })
    expect(storageKey(fixed(60), 'k')).toBe('default@60:k')
    expect(storageKey(fixed(0.001), 'k')).toBe('default@0.001:k')
    expect(storageKey(fixed(3600), 'k')).not.toBe(storageKey(fixed(60), 'k'))
  })

  test('sliding windows of different length share the events of a key', () => {
    expect(storageKey(policyOf({ windowSeconds: 1 }), 'k')).toBe(
      storageKey(policyOf({ windowSeconds: 2 }), 'k'),
    )
  })

  test('up to 119 bytes are stored as they are, more as a prefix and a digest of 120 bytes in all', () => {
    const longest = 'x'.repeat(119 - 'default:'.length)
    expect(stored(longest)).toBe(`default:${longest}`)
    expect(stored(`${longest}x`)).toMatch(/^default:x{68}#[\w-]{43}$/)
  })

  test('nobody can write the stored form of a long key as a short one', () => {
    const long = stored('x'.repeat(500))
    const forged = long.slice('default:'.length)
    expect(stored(forged)).not.toBe(long)
  })

  test.each([
    ['two bytes', 'é'],
    ['three bytes', '€'],
    ['four bytes', '😀'],
    ['the replacement character', '\ufffd'],
  ])('a cut inside a character of %s leaves valid UTF-8 of 120 bytes', (_, character) => {
    for (let shift = 0; shift < 4; shift += 1) {
      const key = stored('x'.repeat(shift) + character.repeat(200))
      const bytes = Buffer.from(key)
      expect(bytes).toHaveLength(120)
      expect(new TextDecoder('utf-8', { fatal: true }).decode(bytes)).toBe(key)
    }
  })
})

describe('no two keys become one', () => {
  const long = 'x'.repeat(9_999)
  const alike: Key[] = [
    'a',
    'A',
    ' a',
    'a ',
    'a  ',
    'a\0',
    '\0a',
    'a\n',
    'a\u00ad',
    'a\u200b',
    'ä',
    'a\u0308',
    'ⓐ',
    '😀',
    '😁',
    '\ud83d',
    '\ude00',
    '\ude00\ud83d',
    '\ufffd',
    '\ufffd\ufffd',
    '"\\ud83d"',
    '["a"]',
    ['a'],
    ['a', ''],
    ['', 'a'],
    [''],
    '__proto__',
    'constructor',
    'toString',
    `${long}a`,
    `${long}b`,
    `${long}😀`,
    `${long}\ud83d`,
    [`${long}a`],
    [long, 'a'],
  ]

  test('hazard 154: length, emoji, NUL, blanks, case, half surrogates and prototype names all make a difference', () => {
    const bytes = alike.map((key) => Buffer.from(stored(key)).toString('hex'))
    expect(new Set(bytes).size).toBe(alike.length)
  })

  test('hazard 155: different spellings of one word stay different keys, as nothing is folded', () => {
    const spellings = ['straße', 'STRASSE', 'strasse', 'Straße', 'ﬁ', 'fi', 'İ', 'i̇', 'ſ', 's']
    expect(new Set(spellings.map(stored)).size).toBe(spellings.length)
  })

  const unit = fc.constantFrom(...':[]"@#\\,60a\0é', '\ud800', '\udc00')
  const text = fc.oneof(
    fc.array(unit, { minLength: 1, maxLength: 4 }).map((units) => units.join('')),
    fc.string({ unit: 'binary', minLength: 1 }),
    fc.tuple(fc.nat(130), unit).map(([length, end]) => 'x'.repeat(length) + end),
  )
  const parts = fc.array(fc.oneof(fc.constant(''), text), { minLength: 1, maxLength: 4 })
  const name = fc.oneof(
    fc.constantFrom('a', 'a6', 'a.', 'default'),
    fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/),
  )
  const subject = fc.record({
    name,
    algorithm: fc.constantFrom('sliding-window' as const, 'fixed-window' as const),
    windowSeconds: fc.constantFrom(0.001, 6, 60, 31_536_000),
    key: fc.oneof(text, parts),
  })
  type Subject = typeof subject extends fc.Arbitrary<infer T> ? T : never

  const identity = ({ name, algorithm, windowSeconds, key }: Subject): string =>
    JSON.stringify([name, key, algorithm === 'fixed-window' ? windowSeconds : null])
  const keyOf = ({ key, ...options }: Subject): string => storageKey(policyOf(options), key)

  test('hazard 146: names, algorithms, window lengths, texts and parts never collide', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(subject, { selector: identity, minLength: 2, maxLength: 60 }),
        (subjects) => {
          const bytes = subjects.map((one) => Buffer.from(keyOf(one)).toString('hex'))
          expect(new Set(bytes).size).toBe(subjects.length)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('every stored key is well-formed, has at most 120 bytes, and is the same every time', () => {
    fc.assert(
      fc.property(subject, (one) => {
        const key = keyOf(one)
        expect(key.isWellFormed()).toBe(true)
        expect(Buffer.byteLength(key)).toBeLessThanOrEqual(120)
        expect(keyOf(one)).toBe(key)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('what is no key', () => {
  test.each([
    ['an empty text', '', 'string'],
    ['nothing', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a number', 42, 'number'],
    ['a bigint', 42n, 'bigint'],
    ['a boolean', true, 'boolean'],
    ['a symbol', Symbol('k'), 'symbol'],
    ['an object', { id: 1 }, 'object'],
    ['a String object', Object('k'), 'object'],
    ['bytes', Buffer.from('k'), 'object'],
    ['no parts', [], 'object'],
    ['a part that is a number', ['a', 1], 'object'],
    ['a part that is missing', ['a', undefined], 'object'],
    ['parts that are holes', Array(2), 'object'],
    ['parts inside parts', [['a']], 'object'],
  ])('%s is refused with rule, value and type', (_, key, type) => {
    const act = () => stored(key as Key)
    expect(act).toThrow(TypeError)
    expect(act).toThrow(new RegExp(`^Expected \`key\` to be a text.*, got .*\\(${type}\\)$`))
  })
})
