import { spawn } from 'node:child_process'

/** Cleans up when this process ends in whatever way, `kill -9` included. */
export interface Guard {
  /** The process group to kill first; `undefined` when there is none to kill any more. */
  watch(pid: number | undefined): void
  /** Cleans up now (kills nothing) and settles when that is done. */
  release(): Promise<void>
}

// Reads process ids until its standard input ends, which the kernel sees to when the parent dies. It does not
// wait for the death of what it kills: where no init process reaps orphans, signal 0 finds them for ever.
// Instead it repeats the cleanup, which fails when a process still writes into the folder.
const script = `
pid=
while read -r line; do pid=$line; done
[ -z "$pid" ] || kill -s KILL -- "-$pid"
tries=0
until "$@" || [ "$tries" -ge 50 ]; do sleep 0.1; tries=$((tries + 1)); done`

/**
 * Starts a small shell which outlives this process just long enough to run `cleanup`, a command and its
 * arguments. A handler of `exit` or of signals could not do this: none of them runs after `kill -9`, nor when
 * jest itself is aborted.
 *
 * @example
 * const guard = createGuard(['rm', '-rf', '--', folder])
 * guard.watch(child.pid) // `child` was spawned with `detached: true`, so it leads a process group
 */
export function createGuard(cleanup: readonly [string, ...string[]]): Guard {
  // `detached` takes it out of the terminal's foreground group: Ctrl-C must reach us and not the guard.
  const shell = spawn('sh', ['-c', script, 'guard', ...cleanup], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((resolve) => {
    shell.once('close', () => resolve())
    shell.once('error', () => resolve())
  })
  shell.stdin.on('error', () => {}) // the guard was killed; nothing is left that could be told
  shell.unref()
  return {
    watch(pid) {
      shell.stdin.write(`${pid ?? ''}\n`)
    },
    release() {
      shell.ref()
      if (!shell.stdin.writableEnded) shell.stdin.end('\n')
      return ended
    },
  }
}
