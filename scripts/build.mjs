// Compiles lib/ twice, for `import` and for `require`, each with its own declarations, into dist/.
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
for (const format of ['esm', 'cjs']) {
  execFileSync('npx', ['--no-install', 'tsc', '-p', `tsconfig.${format}.json`], { stdio: 'inherit' })
}
// The folders' own package.json tells Node, and TypeScript, what the files are.
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
writeFileSync('dist/esm/package.json', '{ "type": "module" }\n')
