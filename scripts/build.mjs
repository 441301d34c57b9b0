// Compiles lib/ twice, for `import` and for `require`, each with its own declarations, into dist/.
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
for (const format of ['esm', 'cjs']) {
  execFileSync('npx', ['--no-install', 'tsc', '-p', `tsconfig.${format}.json`], { stdio: 'inherit' })
  // What browsers load is not compiled, but copied.
  for (const name of ['page', 'page-folder.cjs'])
    cpSync(`lib/operate/dashboard/${name}`, `dist/${format}/operate/dashboard/${name}`, { recursive: true })
}
// The folders' own package.json tells Node, and TypeScript, what the files are.
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
writeFileSync('dist/esm/package.json', '{ "type": "module" }\n')
