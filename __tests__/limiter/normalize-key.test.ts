import fc from 'fast-check'
import { normalizeKey } from '../../lib/limiter/normalize-key.js'

const keysOf = (...texts: string[]): Set<string> => new Set(texts.map(normalizeKey))

test('hazard 35: thirteen spellings of one e-mail address are one key', () => {
  const spellings = [
    'userié@example.com',
    'USERIÉ@EXAMPLE.COM',
    ' userié@example.com ',
    'uⓢerié@example.com',
    'ｕserié@example.com',
    'userié@example.com\u200b',
    'us\u00aderi\u00e9@example.com',
    'useri\u00e9@example.com',
    'userie\u0301@example.com',
    'userié@example.com\0',
    'uſerié@example.com',
    'userié@ｅxample.com',
    'userİé@example.com',
  ]
  expect(spellings).toHaveLength(13)
  expect([...keysOf(...spellings)]).toEqual(['userié@example.com'])
})

describe('hazard 155: each class of spellings is one key, and no two classes are the same', () => {
  const classes: [string, ...string[]][] = [
    ['i', 'I', 'İ', 'I\u0307', 'i\u0307', 'ı', 'ⅰ', 'ｉ', 'I\u200b\u0307'],
    ['ss', 'SS', 'ß', 'ẞ', 'ſſ', 'ſs'],
    ['σασ', 'ΣΑΣ', 'ςας', 'σας'],
    ['fi', 'ﬁ', 'FI', 'ﬀi'.slice(1).padStart(2, 'f')],
    ['k', 'K', '\u212a'],
    ['å', 'Å', '\u212b', 'a\u030a', 'A\u200d\u030a'],
    ['ΐ', '\u03b9\u0308\u0301', '\u0399\u0308\u0301'],
    ['\ufffd', '\ud800', '\udfff'],
    ['a\ufffd', 'a\ud800', 'A\udc00'],
    ['a b', ' A B ', 'a\u00a0b', '\ufeffa b\u3000', 'a\u2003b', 'a b \u200b ', '\ta b\r\n'],
    ['ab', 'a\tb', 'a\u200bb', 'a\u2060b', 'a\ufe0fb', 'a\u034fb', 'a\u3164b', 'a\u{e0061}b', '\u202eab'],
    ['１'.normalize('NFKC'), '１', '①', '\u{1d7cf}'],
    ['😀'],
    ['(empty)', '', ' ', '\0', '\u200b\u00ad', '\u3164'],
    ['(too long)', 'a'.repeat(1001), `${'\u200b'.repeat(1001)}a`, 'ﷺ'.repeat(60)],
  ]

  test.each(classes)('%j', (key, ...spellings) => {
    expect([...keysOf(key, ...spellings)]).toEqual([key])
  })

  test('all differ', () => {
    expect(keysOf(...classes.map(([key]) => key)).size).toBe(classes.length)
  })
})

test('different people stay different', () => {
  const people = [
    ...['ann@example.com', 'ann@example.org', 'anne@example.com', 'a.nn@example.com', 'ann+x@example.com'],
    ...[
      'ann@sub.example.com',
      'ann',
      'Änn',
      'ánn',
      'àn n',
      'an n',
      'ann1',
      'ann2',
      'a-nn',
      'a_nn',
      "a'nn",
      'аnn',
    ],
    ...[
      'renee',
      'renée',
      'reneé',
      'jürgen',
      'jurgen',
      'juergen',
      'øre',
      'ore',
      'łukasz',
      'lukasz',
      'и',
      'й',
      'が',
      'か',
    ],
    ...['李', '李明', '😀', '😁', '__proto__', 'constructor', 'null', '0', 'x'.repeat(1000), 'x'.repeat(999)],
  ]
  expect(keysOf(...people).size).toBe(people.length)
})

const nasty = fc.constantFrom(
  ...[
    'i',
    'I',
    'İ',
    'ı',
    'ß',
    'ẞ',
    'ſ',
    'Σ',
    'ς',
    'ﬁ',
    'ŉ',
    'ǰ',
    'ΐ',
    'ᾴ',
    'ﷺ',
    'é',
    '가',
    'ᄀ',
    'ᅡ',
    'ệ',
    'ị',
    'ẛ',
  ],
  ...[
    '\u0300',
    '\u0301',
    '\u0307',
    '\u0323',
    '\u0328',
    '\u0338',
    '\u0345',
    '\u034f',
    '\u200b',
    '\u200d',
    '\u00ad',
  ],
  ...[
    '\ufe0f',
    '\u3164',
    '\u1160',
    ' ',
    '\u00a0',
    '\u3000',
    '\t',
    '\0',
    '\ud800',
    '\udc00',
    '´',
    '\u{e0061}',
  ],
)
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: nasty }),
  fc.string({ unit: fc.oneof(nasty, fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })) }),
  fc.string({ unit: nasty, minLength: 990, maxLength: 1010 }),
)

test('the key of a key is that key: never empty, never longer than 1,000 units, well-formed', () => {
  fc.assert(
    fc.property(text, (written) => {
      const key = normalizeKey(written)
      expect(normalizeKey(key)).toBe(key)
      expect(key.length).toBeGreaterThan(0)
      expect(key.length).toBeLessThanOrEqual(1000)
      expect(key.isWellFormed()).toBe(true)
      expect(key).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    }),
    { numRuns: 5000 },
  )
})

test('however a text is cased, composed or padded, it has the same key', () => {
  const padding = fc.string({ unit: fc.constantFrom(' ', '\u200b', '\0', '\u3000', '\u00ad'), maxLength: 9 })
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 50 }),
      padding,
      padding,
      (written, before, after) => {
        const spellings = [
          written.toUpperCase(),
          written.toLowerCase(),
          ...(['NFC', 'NFD', 'NFKC', 'NFKD'] as const).map((form) => written.normalize(form)),
          before + written + after,
        ]
        expect(keysOf(...spellings)).toEqual(keysOf(written))
      },
    ),
    { numRuns: 1000 },
  )
})

test('a long text costs no more than its bound', () => {
  const texts = ['\u0301\u0323'.repeat(5_000_000), 'ﷺ'.repeat(1000), `a${'\u0323\u0307'.repeat(499)}`]
  const start = performance.now()
  for (const each of texts) normalizeKey(each)
  expect(performance.now() - start).toBeLessThan(100)
})

test.each([undefined, null, 42, true, {}, ['ann'], Symbol('ann'), new String('ann')])(
  '%p throws',
  (value) => {
    expect(() => normalizeKey(value as string)).toThrow(TypeError)
  },
)
