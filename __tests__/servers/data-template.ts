import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.js'
import { prepareFolder } from './prepare-folder.js'
import { runCommand } from './run-command.js'
import type { ServerProgram } from './server-program.js'
import { userFlags } from './user-flags.js'

/**
 * A data folder as it is right after installation, with `root` and no password. It is kept in the cache and
 * copied for each server, because making one takes MySQL 3.4 s and MariaDB 1.8 s, while a copy takes 0.1 s.
 */
export async function dataTemplate(program: ServerProgram): Promise<string> {
  const folder = join(cacheFolder(), `${program.cacheName}.data`)
  await prepareFolder(folder, async (partial, guard) => {
    const { command, flags } = program
    const common = ['--no-defaults', ...userFlags(), ...flags, `--datadir=${partial}`]
    if (program.kind === 'mysql') {
      // Its default for files to import is a folder that only an installed package has.
      await runCommand([...command, ...common, '--initialize-insecure', '--secure-file-priv=NULL'], { guard })
      // The server's unique id: a copy without one draws its own, as members of one replication group must.
      await rm(join(partial, 'auto.cnf'), { force: true })
    } else {
      const input = await systemTables(program.shareFolder)
      await runCommand([...command, ...common, '--bootstrap', '--max-allowed-packet=8M'], { guard, input })
    }
  })
  return folder
}

/**
 * What `mariadb-install-db` feeds to the server, less the help texts. Not the script itself: it runs the
 * program directly, without the loader. A statement ends with its line.
 */
async function systemTables(shareFolder: string): Promise<string> {
  const scripts = ['system_tables', 'performance_tables', 'system_tables_data']
  const files = [
    ...scripts.map((name) => join(shareFolder, `mariadb_${name}.sql`)),
    join(shareFolder, 'maria_add_gis_sp_bootstrap.sql'),
    join(shareFolder, 'mariadb_sys_schema.sql'),
  ].map((file) => (existsSync(file) ? file : file.replace('mariadb_', 'mysql_'))) // their names before MariaDB 11
  const sql = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  return [
    'CREATE DATABASE IF NOT EXISTS mysql;',
    'USE mysql;',
    'SET @auth_root_socket=NULL;', // a password, which is empty, instead of the name of the system's user
    'SET @skip_auth_anonymous=1;',
    ...sql,
  ].join('\n')
}
