const UNITS: readonly [seconds: number, name: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
]

/** Seconds as people say them, in at most two units: `14 s`, `3 min 20 s`, `2 h`, `1 d 4 h`. */
export function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds < 1 ? Number(seconds.toFixed(3)) : Math.round(seconds)} s`
  let rest = Math.round(seconds)
  const parts: string[] = []
  for (const [size, name] of [...UNITS, [1, 's'] as const]) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count} ${name}`)
    // What comes behind the second unit is noise.
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break
  }
  return parts.join(' ')
}
