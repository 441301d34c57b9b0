import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore } from '../../lib/index.js'
import { History } from '../../scripts/load/history.js'
import type { LoadFindings } from '../../scripts/load/load-test.js'
import { parseOptions } from '../../scripts/load/options.js'
import { verdictOf } from '../../scripts/load/verdict.js'
import { JournalReader, writeJournal } from '../processes/journal.js'
import { recordDecisions } from '../processes/record-decisions.js'
import { hit, policy } from '../stores/policies.js'

const SECOND = 1e6
/** Times are far from each other compared with how far clocks may be apart. */
function history() {
  const all = new History([{ name: 'load', limit: 2 }], 10, 90)
  let asked = 0
  const decide = (process: number, at: number, isAdmitted: 0 | 1, key = 'load:a') => {
    asked += 1
    all.add(process, { ask: asked, at: at - 1, hits: [[key, 1]] })
    all.add(process, { of: asked, verdicts: [[at, isAdmitted]] })
    all.add(process, { of: asked, at: at + 1, isFailed: false })
  }
  const ask = (process: number, entry: object): number => {
    asked += 1
    all.add(process, { ask: asked, ...entry } as never)
    return asked
  }
  return { all, decide, ask }
}

describe('the journals of several processes', () => {
  test('are exact together, judged in one piece or in many', () => {
    for (const pieces of [1, 5]) {
      const { all, decide } = history()
      const faults: string[] = []
      for (let second = 10; second < 70; second += 1) {
        decide(second % 2, second * SECOND, second % 10 < 2 ? 1 : 0)
        if ((second - 9) % (60 / pieces) === 0) faults.push(...all.judge(second * SECOND))
      }
      expect(faults).toEqual([])
      expect(all.counts).toMatchObject({ admitted: 12, denied: 48 })
    }
  })

  test('show one too many, and a denial without a reason', () => {
    const { all, decide } = history()
    for (const second of [1, 2, 3]) decide(second, second * SECOND, 1)
    decide(1, 30 * SECOND, 0)
    expect(all.judge(Number.POSITIVE_INFINITY)).toEqual([
      'load:a: 3 of 2 inside the window that ends at 3000000',
      'load:a: denied at 30000000 with 0 of 2 inside the window',
    ])
  })

  test('show one too many whose window reaches into what was judged before', () => {
    const { all, decide } = history()
    for (const second of [1, 9]) decide(1, second * SECOND, 1)
    expect(all.judge(9 * SECOND)).toEqual([])
    decide(2, 10 * SECOND, 1)
    expect(all.judge(20 * SECOND)).toEqual(['load:a: 3 of 2 inside the window that ends at 10000000'])
  })

  test.each<[string, object]>([
    ['a refund', { at: 3 * SECOND, refunds: [['load:a', SECOND, 1]] }],
    ['a reset', { at: 3 * SECOND, resets: ['load:a'] }],
  ])('let %s make room, and not before it was asked', (_, entry) => {
    const before = history()
    for (const second of [1, 2, 2.5]) before.decide(1, second * SECOND, 1)
    before.all.add(1, { of: before.ask(1, entry), at: 4 * SECOND, isFailed: false })
    expect(before.all.judge(Number.POSITIVE_INFINITY)).toHaveLength(1)

    const after = history()
    for (const second of [1, 2]) after.decide(1, second * SECOND, 1)
    after.all.add(1, { of: after.ask(1, entry), at: 4 * SECOND, isFailed: false })
    after.decide(2, 5 * SECOND, 1)
    expect(after.all.judge(Number.POSITIVE_INFINITY)).toEqual([])

    const denied = history()
    for (const second of [1, 2]) denied.decide(1, second * SECOND, 1)
    denied.all.add(1, { of: denied.ask(1, entry), at: 4 * SECOND, isFailed: false })
    denied.decide(2, 5 * SECOND, 0)
    expect(denied.all.judge(Number.POSITIVE_INFINITY)).toHaveLength(1)
  })

  test('leave open what a process was at when it was killed', () => {
    const { all, decide, ask } = history()
    decide(1, SECOND, 1)
    ask(2, { at: 2 * SECOND, hits: [['load:a', 1]] })
    all.lose(2, 3 * SECOND)
    decide(1, 6 * SECOND, 0)
    expect(all.judge(7 * SECOND)).toEqual([])
    expect([...all.inWindow(7 * SECOND)]).toEqual([['load:a', 1, 2]])
    expect(all.counts).toMatchObject({ admitted: 1, denied: 1, unknown: 1 })
    decide(1, 20 * SECOND, 0)
    expect(all.judge(21 * SECOND)).toHaveLength(1)
  })

  test('explain the rows of keys that are hit, and of others until they are swept', () => {
    const { all, decide } = history()
    for (let second = 1; second <= 200; second += 1) decide(1, second * SECOND, 1)
    decide(1, 10 * SECOND, 1, 'load:gone')
    decide(1, 150 * SECOND, 0, 'load:denied')
    all.judge(200 * SECOND)
    expect(all.rowsAt(200 * SECOND, 90)).toEqual({ keys: 2, events: 12 })
    expect(all.rowsAt(200 * SECOND, 40)).toEqual({ keys: 1, events: 12 })
  })
})

test('a journal has what a store was asked and said, and is read as it grows', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'journal-'))
  try {
    const filename = join(folder, 'a.jsonl')
    const journal = writeJournal(filename)
    const reader = new JournalReader(filename)
    const store = recordDecisions(new MemoryStore({ sweepSeconds: false }), journal.recorder)
    const one = policy({ limit: 1 })
    const reading = await hit(store, 'é', one)
    expect([...reader.read()]).toEqual([
      { ask: 1, at: expect.any(Number), hits: [['p:é', 1]] },
      { of: 1, verdicts: [[reading.at, 1]] },
      { of: 1, at: expect.any(Number), isFailed: false },
    ])
    await hit(store, 'é', one)
    await store.reset(['p:é'])
    journal.error('ERR_STORE_DOWN')
    appendFileSync(filename, '{"of":')
    const rest = [...reader.read()]
    expect(rest).toHaveLength(6)
    expect(rest[1]).toMatchObject({ of: 2, verdicts: [[expect.any(Number), 0]] })
    expect(rest.at(-1)).toEqual({ error: 'ERR_STORE_DOWN' })
    appendFileSync(filename, '9,"at":1,"isFailed":true}\n')
    expect([...reader.read()]).toEqual([{ of: 9, at: 1, isFailed: true }])
    reader.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

describe('the verdict of a load', () => {
  const flat = Array.from({ length: 12 }, (_, i) => ({
    heap: i < 2 ? 9e6 : 20e6,
    resident: 120e6 + i,
    known: 20_000,
  }))
  const good: LoadFindings = {
    ...{ server: '9.7.4', seconds: 120, killed: 3, fromMemory: 5, slowestMs: 80, errors: {}, faults: [] },
    counts: { admitted: 1000, denied: 2000, refunds: 10, resets: 3, unknown: 4 },
    memory: [flat, flat],
    tables: [{ keys: 90, events: 100, mostKeys: 100, mostEvents: 120 }],
  }

  test('is that it holds where a heap grows by what is remembered of keys, and by no more', () => {
    const learning = (bytes: number) =>
      flat.map((each, i) => ({ ...each, heap: 20e6 + i * bytes, known: i * 1000 }))
    expect(verdictOf({ ...good, memory: [learning(1e6)] }).holds).toBe(true)
    expect(verdictOf({ ...good, memory: [learning(2e6)] }).holds).toBe(false)
  })

  test('is that it holds', () => {
    const { holds, text } = verdictOf(good)
    expect(holds).toBe(true)
    expect(text).toMatch(/\nHOLDS: no window held more than its limit.*\n$/)
  })

  test.each<[string, Partial<LoadFindings>, RegExp]>([
    ['an inexact history', { faults: ['a: 3 of 2 inside'] }, /1 times a limit was not what was told/],
    ['errors to callers', { errors: { ERR_STORE_TIMEOUT: 2 } }, /callers were told of 2 errors/],
    [
      'a heap that grows',
      { memory: [flat, flat.map((each, i) => ({ ...each, heap: 20e6 + i * 2e6 }))] },
      /memory grew/,
    ],
    [
      'a process that grows',
      { memory: [flat.map((each, i) => ({ ...each, resident: 120e6 + i * 9e6 }))] },
      /memory grew/,
    ],
    [
      'tables that grow',
      { tables: [...good.tables, { keys: 90, events: 130, mostKeys: 100, mostEvents: 120 }, ...good.tables] },
      /the tables hold more than they must/,
    ],
    ['nothing at all', { counts: { ...good.counts, admitted: 0 } }, /nothing was decided/],
  ])('is that it does not, for %s', (_, found, reason) => {
    const { holds, text } = verdictOf({ ...good, ...found })
    expect(holds).toBe(false)
    expect(text).toMatch(/\nDOES NOT HOLD: .*\.\n$/)
    expect(text).toMatch(reason)
  })
})

test.each([[['--server', 'postgres']], [['--seconds', '9']], [['--seconds', '1e9']], [['--what']]])(
  '%j is refused',
  (args) => {
    // Node's own TypeError for an unknown option is not the class that Jest knows.
    expect(() => parseOptions(args)).toThrow(expect.objectContaining({ name: 'TypeError' }))
  },
)
