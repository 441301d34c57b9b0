import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { calendarContract } from './calendar-contract.js'
import { correctionsContract } from './corrections-contract.js'
import { leaseContract } from './lease-contract.js'
import { agreesWithModel } from './model-property.js'
import { storeContract } from './store-contract.js'
import type { Subject } from './subject.js'
import { openSqliteFile } from './subjects.js'
import { usageContract } from './usage-contract.js'

describe('SqliteStore', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
  let files = 0
  afterAll(() => rmSync(folder, { recursive: true }))

  const open = (options: { keepUsageSeconds?: Record<string, number> } = {}): Promise<Subject> => {
    files += 1
    return openSqliteFile(join(folder, `${files}.sqlite`), options)
  }

  storeContract(open)
  correctionsContract(open)
  leaseContract(open, 60)
  calendarContract(open, 100)
  usageContract((keepUsageSeconds) => open({ keepUsageSeconds }), 60)

  it('decides any schedule as the reference model does', () => agreesWithModel(open, 150))
})
