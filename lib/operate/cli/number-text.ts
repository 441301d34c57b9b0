/** A number for people: `12,345`, at most two digits behind the point. */
export const numberText = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: 2 })

/** `1 key`, `2 keys`. */
export const countText = (count: number, one: string): string =>
  `${numberText(count)} ${one}${count === 1 ? '' : 's'}`
