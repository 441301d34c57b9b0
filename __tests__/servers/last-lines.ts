/** The end of a log or of a command's output, short enough for an error message. */
export function lastLines(text: string, count = 20): string {
  return text.trimEnd().split('\n').slice(-count).join('\n')
}
