/**
 * What a terminal or a reader could take for something else: control characters, which move the cursor and worse,
 * separators of lines, and characters that nobody sees or that turn the direction of writing. Keys are often what
 * strangers wrote.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('')

/** A text of somebody else, safe to show on one line of a terminal. */
export const printable = (text: string): string => text.replace(UNSAFE, escaped)

/** JSON on one line, with the same characters escaped: still the same JSON. */
export const jsonText = (value: unknown): string => JSON.stringify(value).replace(UNSAFE, escaped)
