/** Keys in one page. */
const PAGE = 500

/**
 * The stored keys that begin with a text, page by page, each read by itself: keys that come or go meanwhile may be in it
 * or not.
 *
 * @param prefix - ends in a character of ASCII
 * @param read - at most so many keys between two, without those, in the order of their bytes
 */
export async function* pagesOfKeys(
  prefix: string,
  read: (after: Buffer, before: Buffer, most: number) => Promise<Uint8Array[]>,
): AsyncGenerator<string[]> {
  let after = Buffer.from(prefix, 'utf8')
  const before = Buffer.from(after)
  before[before.length - 1] = (before.at(-1) as number) + 1
  for (;;) {
    const keys = await read(after, before, PAGE)
    const last = keys.at(-1)
    if (last === undefined) return
    yield keys.map((key) => Buffer.from(key).toString('utf8'))
    after = Buffer.from(last)
  }
}
