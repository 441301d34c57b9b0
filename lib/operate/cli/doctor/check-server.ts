import { type Finding, note, ok, problem, warning } from './finding.js'
import { isOn, type MysqlFacts, serverName } from './mysql-facts.js'

/** The oldest versions whose syntax the limiter keeps to. */
const OLDEST = { mysql: [5, 7], mariadb: [10, 3] } as const

/** What the server is, and how it was told to treat statements and transactions. */
export const checkServer = (facts: MysqlFacts): Finding[] => [
  version(facts),
  writable(facts),
  isolation(facts),
  sqlMode(facts),
  binaryLog(facts),
  durability(facts),
]

function version(facts: MysqlFacts): Finding {
  const name = serverName(facts)
  const { isMariaDb } = facts
  // MariaDB may put a version of MySQL in front of its own, for old clients.
  const [, major, minor] =
    (isMariaDb ? /(\d+)\.(\d+)\.\d+-mariadb/i : /^(\d+)\.(\d+)/).exec(facts.version) ?? []
  const [oldestMajor, oldestMinor] = OLDEST[isMariaDb ? 'mariadb' : 'mysql']
  const isOld = Number(major) < oldestMajor || (Number(major) === oldestMajor && Number(minor) < oldestMinor)
  if (isOld) {
    return problem(
      'version',
      `${name} is too old.`,
      'Update it to MySQL 5.7 or MariaDB 10.3, better to a version that is maintained.',
    )
  }
  const comment = `${facts.version} ${facts.global.get('version_comment') ?? ''}`
  const other = /tidb|vitess|aurora|singlestore|planetscale/i.exec(comment)?.[0]
  if (other === undefined) return ok('version', name)
  return note(
    'version',
    `${name} calls itself ${other}.`,
    'It is not among the servers that the limiter is tested with: run npm run check:exact in a clone against it before you rely on it.',
  )
}

function writable({ global, isMariaDb }: MysqlFacts): Finding {
  const reasons = [
    'read_only',
    'super_read_only',
    'innodb_read_only',
    'offline_mode',
    'transaction_read_only',
    'tx_read_only',
  ].filter((name) => isOn(global.get(name)))
  if (reasons.length === 0) return ok('writes', 'The server takes writes.')
  return problem(
    'writes',
    `The server is set to refuse writes (${reasons.join(', ')}).`,
    'It is a replica, or a primary that was demoted: put the address of the primary into DATABASE_URL, or all hosts with commas between them. Only if this is the primary, end it there:',
    reasons
      .filter((name) => name !== 'innodb_read_only')
      .map((name) => `SET GLOBAL ${name} = ${name === 'read_only' && isMariaDb ? 0 : 'OFF'};`),
  )
}

function isolation({ session }: MysqlFacts): Finding {
  const level = (session.get('transaction_isolation') ?? session.get('tx_isolation') ?? '').toUpperCase()
  const isUsual = level === 'REPEATABLE-READ' || level === 'READ-COMMITTED'
  if (isUsual) return ok('isolation', `${level}; the limiter sets its own for its own transactions.`)
  return warning(
    'isolation',
    `Sessions begin at ${level}. The limiter sets its own and stays exact, but whatever else reads these tables does not.`,
    level === 'SERIALIZABLE'
      ? "In a transaction, a SELECT of yours on the limiter's tables locks their rows, and decisions wait for it. Unless somebody chose this on purpose, set the default back, here and in the server's configuration (transaction-isolation):"
      : "Your own reads may see what is rolled back later. Unless somebody chose this on purpose, set the default back, here and in the server's configuration (transaction-isolation):",
    ['SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ;'],
  )
}

/** Modes that change how statements are read or values are stored. */
const UNUSUAL =
  /^(ANSI|ANSI_QUOTES|ORACLE|MSSQL|NO_BACKSLASH_ESCAPES|PIPES_AS_CONCAT|HIGH_NOT_PRECEDENCE|PAD_CHAR_TO_FULL_LENGTH|EMPTY_STRING_IS_NULL|NO_UNSIGNED_SUBTRACTION|TIME_TRUNCATE_FRACTIONAL)$/

function sqlMode({ session }: MysqlFacts): Finding {
  const text = session.get('sql_mode') ?? ''
  const modes = text.split(',').filter((mode) => mode !== '')
  if (!modes.some((mode) => /^(STRICT_TRANS_TABLES|STRICT_ALL_TABLES|TRADITIONAL)$/.test(mode))) {
    return warning(
      'sql_mode',
      `There is no strict mode (sql_mode is '${text}'): the server cuts values that do not fit, instead of refusing them.`,
      'The limiter works without one as long as its tables are as they should be, which "schema" below checks. For everything else you store, switch it on, here and in the server\'s configuration, after a test of your application:',
      [`SET GLOBAL sql_mode = '${[...modes, 'STRICT_TRANS_TABLES'].join(',')}';`],
    )
  }
  const unusual = modes.filter((mode) => UNUSUAL.test(mode))
  if (unusual.length === 0) return ok('sql_mode', 'A strict mode.')
  return note(
    'sql_mode',
    `Unusual modes: ${unusual.join(', ')}.`,
    'Nothing to do for the limiter, which sends keys as hexadecimal numbers and is tested with all of them. Only SQL that you write yourself is read otherwise.',
  )
}

function binaryLog({ session }: MysqlFacts): Finding {
  if (!isOn(session.get('log_bin'))) return ok('binlog', 'The binary log is off.')
  const format = (session.get('binlog_format') ?? 'ROW').toUpperCase()
  if (format !== 'STATEMENT') return ok('binlog', `The binary log is on, by ${format.toLowerCase()}.`)
  return warning(
    'binlog',
    'The binary log is written by statement (binlog_format = STATEMENT), so the server refuses writes at READ COMMITTED.',
    "The limiter notices that and goes on at REPEATABLE READ: it stays exact, but keys that have nothing to do with each other can wait for each other. Set the format, here and in the server's configuration; sessions that are open keep the old one:",
    ["SET GLOBAL binlog_format = 'ROW';"],
  )
}

function durability({ global }: MysqlFacts): Finding {
  const flush = global.get('innodb_flush_log_at_trx_commit') ?? '1'
  if (flush === '1') return ok('durability', 'Every commit is flushed to disk.')
  return note(
    'durability',
    `Commits are flushed about once a second (innodb_flush_log_at_trx_commit = ${flush}).`,
    'Decisions are faster for it. A crash of the server may forget the hits of the last second, and admit so many again. If that must not be:',
    ['SET GLOBAL innodb_flush_log_at_trx_commit = 1;'],
  )
}
