import type { ServerKind } from './server.js'

/** A server program that can be run on this machine. */
export interface ServerProgram {
  readonly kind: ServerKind
  /** How it was obtained, for people. */
  readonly source: string
  /**
   * What to run, before the options: the program, or the loader with the libraries it shall use and the
   * program.
   */
  readonly command: readonly string[]
  /** Options by which a program outside its usual place finds its own files. */
  readonly flags: readonly string[]
  /** The folder with its messages and SQL scripts, usually `/usr/share/mysql`. */
  readonly shareFolder: string
  /** The folder that stands for `/`, when it was unpacked: plugins such as Galera's are found from there. */
  readonly root: string | undefined
  /** A name for what is cached about it, different for each version. */
  readonly cacheName: string
}
