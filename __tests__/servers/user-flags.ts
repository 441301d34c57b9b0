/** The server programs refuse to run as root unless told to, and `--user` means nothing to others. */
export function userFlags(): string[] {
  return process.getuid?.() === 0 ? ['--user=root'] : []
}
