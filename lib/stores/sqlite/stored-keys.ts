import { pagesOfKeys } from '../pages-of-keys.js'
import type { Statements } from './statements.js'

/** The stored keys that begin with a text; each page is a transaction of its own. */
export const storedKeys = (
  transact: <T>(work: (open: { readonly statements: Statements }) => T) => Promise<T>,
  prefix: string,
): AsyncGenerator<string[]> =>
  pagesOfKeys(prefix, async (after, before, most) => {
    const rows = await transact(({ statements }) => statements.keysBetween.all(after, before, most))
    return (rows as { rkey: Uint8Array }[]).map(({ rkey }) => rkey)
  })
