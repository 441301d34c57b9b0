/** One clock for all processes of the machine, in microseconds. It never steps. */
export const machineMicros = (): number => Number(process.hrtime.bigint() / 1000n)
