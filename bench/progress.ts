import { SingleBar } from 'cli-progress'

/** Says how far the benchmark has come. */
export interface Progress {
  /** Another section begins. */
  section(title: string): void
  step(label: string): void
  end(): void
}

/** A bar where the terminal can show one, else a line a step. */
export function showProgress(steps: number): Progress {
  return process.stderr.isTTY ? bar(steps) : lines(steps)
}

function bar(steps: number): Progress {
  const drawn = new SingleBar({
    format: '{bar} {percentage}% | {duration_formatted} | {title}: {label}',
    hideCursor: true,
    clearOnComplete: true,
    fps: 4, // drawing takes time from what is measured
  })
  drawn.start(steps, 0, { title: 'servers', label: 'starting' })
  return {
    section: (title) => drawn.update({ title, label: '…' }),
    step: (label) => drawn.increment(1, { label }),
    end: () => drawn.stop(),
  }
}

function lines(steps: number): Progress {
  const begun = performance.now()
  let title = ''
  let done = 0
  return {
    section(next) {
      title = next
    },
    step(label) {
      done += 1
      const seconds = Math.round((performance.now() - begun) / 1000)
      console.error(`[${done}/${steps}] ${seconds} s  ${title}: ${label}`)
    },
    end() {},
  }
}
