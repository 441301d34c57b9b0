// Writes sql/**/*.sql into lib/stores/schema.ts, so that the package finds its schema when an application is
// bundled into one file. A test compares the two.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const dialects = ['mysql', 'sqlite']

const constant = (dialect) => {
  const folder = new URL(`../sql/${dialect}/`, import.meta.url)
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
  const entries = files.map((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8').replace(/[\\`$]/g, '\\$&')
    return `  {\n    file: 'sql/${dialect}/${name}',\n    sql: \`${text}\`,\n  },`
  })
  return `/** The schema files of \`sql/${dialect}\`, in order; the position is the schema version. */
export const ${dialect.toUpperCase()}_SCHEMA: readonly SchemaFile[] = [\n${entries.join('\n')}\n]\n`
}

const source = `// Generated from sql/ by \`npm run generate\`. Edit the .sql files.

/** One schema file of the package: its path inside the package, and its text. */
export interface SchemaFile {
  readonly file: string
  readonly sql: string
}

${dialects.map(constant).join('\n')}`

const target = new URL('../lib/stores/schema.ts', import.meta.url)
if (process.argv.includes('--print')) process.stdout.write(source)
else writeFileSync(target, source)
