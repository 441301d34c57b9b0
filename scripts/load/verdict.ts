import {
  HOT_PART,
  KEYS,
  type LoadFindings,
  type MemorySample,
  PROCESSES,
  SWEEP_SECONDS,
  WINDOW_SECONDS,
} from './load-test.js'

/** How many faults are shown. */
const SHOWN = 10
/** What a process may hold more at the end than after it had warmed up: a part of it, or so many bytes. */
const HEAP = { part: 0.1, bytes: 4e6 }
const RESIDENT = { part: 0.15, bytes: 25e6 }
/** And what it may remember of each key that it did not know then. A slow machine is not warm before it has met them all. */
const KEY_BYTES = 1000

/** Whether all holds, and what was found, for a person. The last line begins with the verdict. */
export interface LoadVerdict {
  readonly holds: boolean
  readonly text: string
}

export function verdictOf(findings: LoadFindings): LoadVerdict {
  const { server, seconds, killed, counts, fromMemory, slowestMs, errors, faults, memory, tables } = findings
  const told = Object.values(errors).reduce((sum, times) => sum + times, 0)
  const growths = memory.map(growthOf)
  const worst = tables.reduce((a, b) => (excess(b) > excess(a) ? b : a))
  const lines = [
    `${server}; ${PROCESSES} processes for ${seconds} seconds, ${killed} killed and replaced`,
    `  keys       ${number(KEYS)} at a time, some of them new and some gone all the while; ${HOT_PART * 100}% of the hits on one`,
    `  hits       ${number(counts.admitted)} admitted and ${number(counts.denied)} denied by the store; ${number(fromMemory)} refused from memory`,
    `             ${number(counts.refunds)} given back, ${number(counts.resets)} resets; ${number(counts.unknown)} unknown: under way when their process was killed`,
    `             the slowest took ${number(Math.round(slowestMs))} ms`,
    `  errors     ${number(told)}${
      told === 0
        ? ''
        : `: ${Object.entries(errors)
            .map(([code, times]) => `${times} × ${code}`)
            .join(', ')}`
    }`,
    ...growths.map(({ text }, i) => `  memory     process ${i + 1}: ${text}`),
    `  tables     rate_keys ${number(worst.keys)} rows, of at most ${number(worst.mostKeys)}; rate_events ${number(worst.events)}, of at most ${number(worst.mostEvents)}`,
    `             that windows of ${WINDOW_SECONDS} seconds and sweeps every ${SWEEP_SECONDS} explain, where they came nearest to it`,
    ...faults.slice(0, SHOWN).map((fault) => `  not exact  ${fault}`),
  ]
  if (faults.length > SHOWN) lines.push(`             and ${number(faults.length - SHOWN)} more`)
  const wrong = [
    ...(faults.length > 0 ? [`${number(faults.length)} times a limit was not what was told`] : []),
    ...(told > 0 ? [`callers were told of ${number(told)} errors`] : []),
    ...(growths.some(({ isFlat }) => !isFlat) ? ['memory grew'] : []),
    ...(excess(worst) > 1 ? ['the tables hold more than they must'] : []),
    ...(counts.admitted === 0 ? ['nothing was decided'] : []),
  ]
  lines.push(
    '',
    wrong.length > 0
      ? `DOES NOT HOLD: ${wrong.join('; ')}.`
      : 'HOLDS: no window held more than its limit, no hit was denied without need, nothing failed, nothing grew.',
  )
  return { holds: wrong.length === 0, text: `${lines.join('\n')}\n` }
}

/** How near the tables are to what is explained; above 1 they are beyond it. */
const excess = ({ keys, events, mostKeys, mostEvents }: LoadFindings['tables'][number]): number =>
  Math.max(keys / Math.max(1, mostKeys), events / Math.max(1, mostEvents))

/** The second quarter of the time, when all is warm, against the last. */
function growthOf(samples: readonly MemorySample[]): { readonly isFlat: boolean; readonly text: string } {
  const quarter = samples.length / 4
  const warm = samples.slice(Math.floor(quarter), Math.ceil(2 * quarter))
  const end = samples.slice(Math.floor(3 * quarter))
  const heap = [median(warm, 'heap'), median(end, 'heap')] as const
  const resident = [median(warm, 'resident'), median(end, 'resident')] as const
  const learnt = median(end, 'known') - median(warm, 'known')
  const isFlat =
    heap[1] <= heap[0] + Math.max(HEAP.bytes, heap[0] * HEAP.part) + learnt * KEY_BYTES &&
    resident[1] <= resident[0] + Math.max(RESIDENT.bytes, resident[0] * RESIDENT.part) + learnt * KEY_BYTES
  const keys = learnt > 0 ? `; ${number(learnt)} keys more remembered` : ''
  const text = `heap ${mega(heap[0])} warm, ${mega(heap[1])} at the end; resident ${mega(resident[0])}, ${mega(resident[1])}${keys}`
  return { isFlat, text }
}

function median(samples: readonly MemorySample[], name: keyof MemorySample): number {
  const sorted = samples.map((sample) => sample[name]).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.POSITIVE_INFINITY
}

const mega = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
const number = (value: number): string => value.toLocaleString('en-US')
