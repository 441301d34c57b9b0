import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import type { Contender } from './contender.js'

const TABLE = `CREATE TABLE IF NOT EXISTS three_statements (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  rkey VARCHAR(120) NOT NULL,
  ts DATETIME NOT NULL,
  KEY ix_rate (rkey, ts)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`
const PRUNE = 'DELETE FROM three_statements WHERE rkey = ? AND ts < DATE_SUB(NOW(), INTERVAL ? SECOND)'
const COUNT =
  'SELECT COUNT(*) AS count FROM three_statements WHERE rkey = ? AND ts >= DATE_SUB(NOW(), INTERVAL ? SECOND)'
const RECORD = 'INSERT INTO three_statements (rkey, ts) VALUES (?, NOW())'

/**
 * What people write by hand: delete what is old, count, insert, each statement on its own. It is why this package
 * exists: between the count and the insert others count the same.
 */
export function threeStatements(store: 'mysql' | 'mariadb'): Contender {
  return {
    name: 'DELETE, COUNT, INSERT by hand',
    store,
    algorithm: 'sliding window',
    configuration: 'prepared statements in autocommit, pool of 10',
    async open(place, { limit, windowSeconds }) {
      const pool = createPool(place)
      await pool.query(TABLE)
      return {
        async hit(key) {
          const connection = await pool.getConnection()
          try {
            await connection.execute<ResultSetHeader>(PRUNE, [key, windowSeconds])
            const [rows] = await connection.execute<RowDataPacket[]>(COUNT, [key, windowSeconds])
            if (Number(rows[0]?.count) >= limit) return false
            await connection.execute<ResultSetHeader>(RECORD, [key])
            return true
          } finally {
            connection.release()
          }
        },
        close: () => pool.end(),
      }
    },
  }
}
