import { execFileSync } from 'node:child_process'
import { policyOf, tellOnce } from './telling.js'

/** Decodes fields with a parser of RFC 9651 that shares nothing with the one that lib serialises with. */
function decode(
  fields: Record<string, { kind: 'list' | 'dictionary'; text: string }>,
): Record<string, unknown> {
  const script = `
    import { decodeDict, decodeList } from 'structured-field-values'
    const fields = JSON.parse(process.argv[1])
    const plain = (_, value) => (value instanceof Map ? Object.fromEntries(value) : value)
    const decoded = Object.entries(fields).map(([name, { kind, text }]) => [name, kind === 'list' ? decodeList(text) : decodeDict(text)])
    console.log(JSON.stringify(Object.fromEntries(decoded), plain))`
  // It is an ES module, which jest's own loader does not load.
  const output = execFileSync('node', ['--input-type=module', '-e', script, JSON.stringify(fields)])
  return JSON.parse(String(output))
}

test('an independent parser reads every field as it is meant', () => {
  const burst = policyOf({ name: 'burst', limit: 100, windowSeconds: 60 })
  const daily = policyOf({ name: 'a_b-c.D', limit: 1_000_000, windowSeconds: 86_400 })
  const newest = tellOnce(
    [
      [burst, 50, 30],
      [daily, 10, 86_000],
    ],
    { standardHeaders: 'draft-11' },
  )
  const eighth = tellOnce([[burst, 100, 30, 12]], { standardHeaders: 'draft-8' })
  const seventh = tellOnce([[burst, 50, 30]], { standardHeaders: 'draft-7' })
  const decoded = decode({
    policies: { kind: 'list', text: String(newest['ratelimit-policy']) },
    limits: { kind: 'list', text: String(newest.ratelimit) },
    denied: { kind: 'list', text: String(eighth.ratelimit) },
    seventh: { kind: 'dictionary', text: String(seventh.ratelimit) },
    seventhPolicy: { kind: 'list', text: String(seventh['ratelimit-policy']) },
  })
  expect(decoded).toEqual({
    policies: [
      { value: 'burst', params: { q: 100, w: 60 } },
      { value: 'a_b-c.D', params: { q: 1_000_000, w: 86_400 } },
    ],
    limits: [
      { value: 'burst', params: { r: 50, t: 30 } },
      { value: 'a_b-c.D', params: { r: 999_990, t: 86_400 } },
    ],
    denied: [{ value: 'burst', params: { r: 0, t: 12 } }],
    seventh: {
      limit: { value: 100, params: null },
      remaining: { value: 50, params: null },
      reset: { value: 30, params: null },
    },
    seventhPolicy: [{ value: 100, params: { w: 60 } }],
  })
})
