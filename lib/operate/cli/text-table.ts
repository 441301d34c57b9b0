/** Columns of a table: `>` before a heading aligns its column to the right, as for numbers. */
export function textTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const right = headings.map((heading) => heading.startsWith('>'))
  const lines = [headings.map((heading) => heading.replace(/^>/, '')), ...rows]
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] ?? 0
          return right[column] ? cell.padStart(width) : cell.padEnd(width)
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
