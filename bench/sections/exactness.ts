import type { Contender, StoreKind } from '../contenders/contender.js'
import * as lineUp from '../contenders/line-up.js'
import { type AcrossBoundary, hitAcrossBoundary } from '../exactness/across-boundary.js'
import { type ColdKeys, coldKeysOf, coldKeysText } from '../exactness/cold-keys.js'
import type { Section, Target } from '../section.js'

const GROUPS: readonly (readonly StoreKind[])[] = [['mysql'], ['mariadb'], ['redis', 'sqlite', 'memory']]
const groupsOf = (quick: boolean) => (quick ? GROUPS.filter(([store]) => store !== 'mariadb') : GROUPS)
const ALL: readonly Contender[] = Object.values(lineUp)
const OURS = [lineUp.slidingMysql, lineUp.slidingMariadb, lineUp.slidingSqlite, lineUp.slidingMemory] as const

interface Finding {
  readonly contender: Contender
  readonly coldKeys: ColdKeys
  readonly boundary: AcrossBoundary
}

/** Who admits more than the limit, by how much, and who denies without need. */
export const exactness: Section = {
  id: 'exactness',
  title: 'Exactness',
  steps: (quick) => groupsOf(quick).length,
  async run(context) {
    const { servers, step } = context
    const findings: Finding[] = []
    for (const stores of groupsOf(context.quick)) {
      const contenders = ALL.filter(({ store }) => stores.includes(store))
      // At the same time, as it takes seconds: this is about what is admitted, not how fast.
      const boundaries = await Promise.all(contenders.map((each) => hitAcrossBoundary(each, servers)))
      for (const [i, contender] of contenders.entries()) {
        findings.push({
          contender,
          coldKeys: await coldKeysOf(contender, context),
          boundary: boundaries[i] as AcrossBoundary,
        })
      }
      step(`who over-admits on ${stores.join(', ')}`)
    }
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [
        {
          title: 'What is admitted of a limit',
          columns: [
            'contender',
            'store',
            'algorithm',
            'cold key: admits of 100',
            'most in one window of limit 20',
            'denied too early',
            'errors',
          ],
          rows: findings.map(({ contender, coldKeys, boundary }) => [
            contender.name,
            contender.store,
            contender.algorithm,
            coldKeysText(coldKeys),
            String(boundary.most),
            String(boundary.tooEarly),
            String(coldKeys.errors + boundary.errors),
          ]),
        },
      ],
      plots: [],
      targets: findings
        .filter(({ contender }) => OURS.some((own) => own === contender))
        .flatMap(exactnessTargets),
      raw: findings.map(({ contender, ...found }) => ({ contender: contender.name, ...found })),
    }
  },
}

const TEXT = `Two meetings for everyone. On a **cold key** of limit 100, 32 callers over 4 instances with connections of their own
meet at once; no window ends meanwhile, so what is admitted above 100 is an error whatever the algorithm. **Around the end of a
window** of one second and limit 20, 8 callers spend the limit late in a window and go on over its end; counted are the hits
that were certainly admitted within some second, from their sending to their answer. A fixed window admits up to twice its limit
there, by design. *Denied too early* are hits that were denied although fewer than 20 can have been in the second before them,
whenever they were decided. All callers are in one process; in memory there is one instance only, as each has its own counters.`

function exactnessTargets({ contender, coldKeys, boundary }: Finding): Target[] {
  const who = `${contender.store}, sliding window`
  return [
    {
      what: `${who}: admitted of 100 on a cold key, most`,
      value: Math.max(...coldKeys.admitted),
      atLeast: 100,
      atMost: 100,
    },
    { what: `${who}: admitted within one window of limit 20, most`, value: boundary.most, atMost: 20 },
    { what: `${who}: denied too early`, value: boundary.tooEarly, atMost: 0 },
  ]
}
