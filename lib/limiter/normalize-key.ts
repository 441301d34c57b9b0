import { optionError } from '../stores/option-error.js'

/** Longest text, before and after, in UTF-16 units. An e-mail address has at most 254 characters. */
const LONGEST = 1000

/** What takes the place of a text with nothing in it, and of one that is longer than any name. */
const EMPTY = '(empty)'
const TOO_LONG = '(too long)'

/** Controls, and what is not seen: zero-width characters, soft hyphens, joiners, variation selectors, fillers, tags. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/**
 * One form for the many spellings of an e-mail address or user name, for keys: where a login accepts a name in any case
 * and with a zero-width space behind it, each spelling would have a limit of its own (hazards 35 and 155).
 *
 * Half surrogate pairs become U+FFFD, compatibility forms such as `ⓢ` and full-width letters become plain (NFKC),
 * invisible characters go, blanks at the ends go, case is folded, and the result is composed (NFC). Folded are also `ß`
 * with `ss`, the long `ſ` with `s`, the final `ς` with `σ`, and the dotted `İ` and dotless `ı` with `i`. Accents
 * stay, and so do dots and `+tags`: to whom these are the same is your application's matter. The default
 * collations of MySQL and MariaDB ignore accents: behind such a look-up take the id of the account it found, and this
 * text if it found none.
 *
 * The result is never empty, so that it can be a key: what has nothing visible in it becomes `(empty)`. Longer than
 * 1,000 UTF-16 units, before or after, becomes `(too long)`: nobody has such a name. Were they told apart, a name behind
 * thousands of invisible characters would have as many keys as there are lengths; normalising them costs too much. It has
 * at most 1,000 units, and normalising it again changes nothing.
 *
 * @example
 * rateLimit({ store, name: 'login-account', limit: 5, windowSeconds: 900, keyFn: (req) => normalizeKey(String(req.body.email)) })
 *
 * @throws TypeError for anything but a text.
 */
export function normalizeKey(text: string): string {
  if (typeof text !== 'string') throw optionError('text', 'a text', text)
  if (text.length > LONGEST) return TOO_LONG
  const visible = text.toWellFormed().normalize('NFKC').replace(INVISIBLE, '').trim()
  const normal = foldCase(visible).normalize('NFC')
  if (normal.length > LONGEST) return TOO_LONG
  return normal === '' ? EMPTY : normal
}

/**
 * Lower case alone keeps apart what upper case joins (`ß`, `ı`), and upper case alone leaves the capital `ẞ`. `İ` in
 * lower case is an `i` with a second dot; at the end of a word the lower case of `Σ` is another letter than inside.
 */
const foldCase = (text: string): string =>
  text
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replace(/i\u0307+/g, 'i')
    .replaceAll('ς', 'σ')
