import { calendarContract } from './calendar-contract.js'
import { correctionsContract } from './corrections-contract.js'
import { leaseContract } from './lease-contract.js'
import { agreesWithModel } from './model-property.js'
import { storeContract } from './store-contract.js'
import { openMemory } from './subjects.js'

describe('MemoryStore', () => {
  storeContract(openMemory)
  correctionsContract(openMemory)
  leaseContract(openMemory, 300)
  calendarContract(openMemory, 300)

  it('decides any schedule as the reference model does', () => agreesWithModel(openMemory, 500))

  describe('with a bound that is not reached', () =>
    storeContract(() => openMemory({ maxEntries: 1_000_000 })))
})
