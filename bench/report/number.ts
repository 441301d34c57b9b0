/** A figure with as many digits as it deserves: `1,234`, `12.3`, `0.81`. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  const digits = Number.isInteger(value) || size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
