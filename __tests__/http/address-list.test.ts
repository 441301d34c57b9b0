import fc from 'fast-check'
import { addressList } from '../../lib/http/address-list.js'

const listed = (entries: readonly string[], address: string | null): boolean =>
  addressList('allowList', entries)(address)

describe('what is in a list', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9', '203.0.113.10'],
    ['203.0.113.9/32', '203.0.113.9', '203.0.113.8'],
    ['203.0.113.0/24', '203.0.113.255', '203.0.114.0'],
    ['203.0.113.64/27', '203.0.113.95', '203.0.113.96'],
    ['10.1.2.3/8', '10.255.255.255', '11.0.0.0'],
    ['128.0.0.0/1', '255.255.255.255', '127.255.255.255'],
    ['0.0.0.0/0', '203.0.113.9', '2001:db8::1'],
    ['2001:db8::1', '2001:db8:0:0::1', '2001:db8::2'],
    ['2001:DB8::/32', '2001:db8:ffff::1', '2001:db9::1'],
    ['2001:db8:8000::/33', '2001:db8:ffff::1', '2001:db8:7fff::1'],
    ['::1', '::1', '127.0.0.1'],
    ['::/0', '2001:db8::1', '203.0.113.9'],
  ])('%s has %s and not %s', (entry, inside, outside) => {
    expect(listed([entry], inside)).toBe(true)
    expect(listed([entry], outside)).toBe(false)
  })

  test.each([
    ['203.0.113.0/24', '::ffff:203.0.113.9'],
    ['203.0.113.0/24', '::ffff:cb00:7109'],
    ['203.0.113.0/24', '64:ff9b::203.0.113.9'],
    ['::ffff:203.0.113.0/120', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::ffff:0:0/96', '203.0.113.9'],
    ['64:ff9b::cb00:7109', '203.0.113.9'],
  ])('hazard 115: IPv4 inside of IPv6 is IPv4: %s has %s', (entry, address) => {
    expect(listed([entry], address)).toBe(true)
  })

  test('no address, no text that is none, and nothing in an empty list', () => {
    const everybody = ['0.0.0.0/0', '::/0']
    expect(listed(everybody, null)).toBe(false)
    expect(listed(everybody, 'unknown')).toBe(false)
    expect(listed(everybody, '')).toBe(false)
    expect(listed([], '203.0.113.9')).toBe(false)
  })

  test('the list is read once: what happens to the array later changes nothing', () => {
    const entries = ['203.0.113.9']
    const isListed = addressList('denyList', entries)
    entries[0] = '0.0.0.0/0'
    expect([isListed('203.0.113.9'), isListed('203.0.113.10')]).toEqual([true, false])
  })

  test('any range of IPv4, against arithmetic', () => {
    const number = (address: string): number =>
      address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
    const range = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }))
    fc.assert(
      fc.property(fc.array(range, { maxLength: 4 }), fc.ipV4(), (ranges, address) => {
        const isIn = ranges.some(([base, length]) => {
          const size = 2 ** (32 - length)
          return Math.floor(number(base) / size) === Math.floor(number(address) / size)
        })
        expect(
          listed(
            ranges.map(([base, length]) => `${base}/${length}`),
            address,
          ),
        ).toBe(isIn)
      }),
      { numRuns: 500 },
    )
  })

  test('hundreds of entries cost no more than a few', () => {
    const timeOf = (isListed: (address: string) => boolean): number => {
      const start = performance.now()
      for (let i = 0; i < 20_000; i += 1) isListed(`203.0.${i & 255}.9`)
      return performance.now() - start
    }
    const list = (length: number) =>
      addressList(
        'denyList',
        Array.from({ length }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`),
      )
    const [few, many] = [list(3), list(3000)]
    timeOf(few)
    expect(timeOf(many)).toBeLessThan(timeOf(few) * 5 + 20)
  })
})

describe('what is no list', () => {
  test.each([
    ...['', ' ', 'localhost', '*', '203.0.113.9 ', ' 203.0.113.9', '203.0.113.9\n', '203.0.113', '1.2.3.4.5'],
    ...['256.0.0.1', '010.0.0.1', '0x7f.0.0.1', '3405803785', '203.0.113.9:80', '10/8', '10.0.0.0/'],
    ...[
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      '10.0.0.0/255.0.0.0',
      '10.0.0.0-10.0.0.9',
    ],
    ...['2001:db8::/129', '2001:db8::1::2', '[2001:db8::1]', 'fe80::1%eth0', '::ffff:1.2.3.4/129', '/8'],
    ...[undefined, null, 10, {}, ['10.0.0.0/8'], /10/],
  ])('an entry %p throws with the option, the entry and the rule', (entry) => {
    const build = () => addressList('denyList', ['10.0.0.0/8', entry as string])
    expect(build).toThrow(TypeError)
    expect(build).toThrow(
      /`denyList\[1\]` to be an IPv4 or IPv6 address, or a range.* got .*\((string|object|undefined|null|number)\)/,
    )
  })

  test('a hole throws too', () => {
    expect(() => addressList('allowList', Array(2) as string[])).toThrow(TypeError)
  })

  test.each([undefined, null, '10.0.0.0/8', {}, new Set(['10.0.0.0/8'])])(
    '%p instead of an array throws',
    (entries) => {
      expect(() => addressList('allowList', entries as string[])).toThrow(/`allowList` to be an array/)
    },
  )
})
