import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The program loader of unpacked packages, and the folders of their libraries. */
export interface Loader {
  readonly loader: string
  readonly libraries: string[]
}

/**
 * Libraries lie in `lib/<architecture>` or, since Debian merged the two, all in `usr/lib/<architecture>`. The
 * links to the loader from `lib64` are absolute: they lead to the machine's own.
 */
export async function findLoader(root: string): Promise<Loader> {
  let loader: string | undefined
  const libraries: string[] = []
  for (const parent of [join(root, 'usr/lib'), join(root, 'lib')]) {
    const folders = await readdir(parent).catch(() => [])
    for (const folder of folders
      .filter((name) => name.includes('-linux-'))
      .map((name) => join(parent, name))) {
      const files = await readdir(folder, { withFileTypes: true })
      const found = files.find((file) => file.isFile() && /^ld(-linux.*|64)\.so\.\d$/.test(file.name))
      if (found) loader = join(folder, found.name)
      libraries.push(folder)
    }
  }
  if (!loader) throw new Error(`Debian packages: no loader below ${root}`)
  return { loader, libraries }
}
