// Generated from sql/ by `npm run generate`. Edit the .sql files.

/** One schema file of the package: its path inside the package, and its text. */
export interface SchemaFile {
  readonly file: string
  readonly sql: string
}

/** The schema files of `sql/mysql`, in order; the position is the schema version. */
export const MYSQL_SCHEMA: readonly SchemaFile[] = [
  {
    file: 'sql/mysql/001-rate-limit.sql',
    sql: `-- express-sql-rate-limit, schema version 1, for MySQL 5.7+ and MariaDB 10.3+.
--
-- store.install() runs this by itself. To run it by hand, with a user who may CREATE:
--   mysql --user=… --password … your_database < 001-rate-limit.sql
-- The application's own user then needs SELECT, INSERT, UPDATE and DELETE on these three tables.
--
-- Times are microseconds since the Unix epoch, UTC: no session time zone and no daylight saving can shift them.
-- Keys are bytes: no collation can merge two of them. They begin with the limiter's name, as in
-- global:203.0.113.9, and can be read with CONVERT(rkey USING utf8mb4).

-- One row a key. It is the lock that serialises the key, and every admitting transaction changes it, so that
-- multi-primary clusters certify it.
CREATE TABLE IF NOT EXISTS rate_keys (
  rkey VARBINARY(120) NOT NULL,
  -- sum of all cost ever counted; goes round at 2^52
  total BIGINT NOT NULL DEFAULT 0,
  -- time of the newest write
  last_ts BIGINT NOT NULL DEFAULT 0,
  -- time of the newest event, where that is later than the write: a lease's event lies at its end; else 0
  stamp_ts BIGINT NOT NULL DEFAULT 0,
  -- how long events are kept: the longest window plus retention, in microseconds
  span BIGINT NOT NULL DEFAULT 0,
  -- events up to here are deleted
  pruned_ts BIGINT NOT NULL DEFAULT 0,
  -- remembered start of the window: its length, its first event, the total before that event
  memo_window BIGINT NOT NULL DEFAULT 0,
  memo_ts BIGINT NOT NULL DEFAULT 0,
  memo_base BIGINT NOT NULL DEFAULT 0,
  -- everything is denied until then
  blocked_until BIGINT NOT NULL DEFAULT 0,
  -- another one whenever past events were changed: what a process remembers of them holds while it is the same
  log_version BIGINT NOT NULL DEFAULT 0,
  -- when the whole key may be swept
  expires_at BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (rkey),
  KEY ix_rate_keys_expires_at (expires_at)
) ENGINE = InnoDB;

-- One row for all that one transaction admitted of a key. The primary key serves every query: first row of a
-- window, rows to delete, the row that frees a slot.
CREATE TABLE IF NOT EXISTS rate_events (
  rkey VARBINARY(120) NOT NULL,
  ts BIGINT NOT NULL,
  -- cost admitted at ts
  hits BIGINT NOT NULL,
  -- the key's running total, this row included
  total BIGINT NOT NULL,
  PRIMARY KEY (rkey, ts)
) ENGINE = InnoDB;

-- One row: the schema's version, and until when some process holds the sweep.
CREATE TABLE IF NOT EXISTS rate_limit_schema (
  id TINYINT NOT NULL,
  version INT NOT NULL,
  sweep_until BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) ENGINE = InnoDB;

INSERT INTO rate_limit_schema (id, version) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = id;
`,
  },
  {
    file: 'sql/mysql/002-usage.sql',
    sql: `-- express-sql-rate-limit, schema version 2, for MySQL 5.7+ and MariaDB 10.3+. Comes after 001-rate-limit.sql.
--
-- store.install() runs this by itself. It is needed only where a store has the option keepUsageSeconds; then the
-- application's own user needs SELECT, INSERT, UPDATE and DELETE on these tables too.

-- What was admitted of a key in a quarter of an hour, of events that are deleted: an event is in rate_events or counted
-- here, never both. Days of every time zone consist of whole quarters of an hour.
CREATE TABLE IF NOT EXISTS rate_usage (
  rkey VARBINARY(120) NOT NULL,
  -- when the quarter began, in microseconds since the Unix epoch
  slice_ts BIGINT NOT NULL,
  -- cost admitted in it
  cost BIGINT NOT NULL,
  -- when the row may be swept
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (rkey, slice_ts),
  KEY ix_rate_usage_expires_at (expires_at)
) ENGINE = InnoDB;

-- Whose usage is kept, so that whoever deletes events knows it: also a process or a command that was not told.
CREATE TABLE IF NOT EXISTS rate_usage_limits (
  -- of the limit
  name VARBINARY(64) NOT NULL,
  -- for how long after its quarter of an hour
  keep_micros BIGINT NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB;

UPDATE rate_limit_schema SET version = 2 WHERE id = 1 AND version < 2;
`,
  },
]

/** The schema files of `sql/sqlite`, in order; the position is the schema version. */
export const SQLITE_SCHEMA: readonly SchemaFile[] = [
  {
    file: 'sql/sqlite/001-rate-limit.sql',
    sql: `-- express-sql-rate-limit, schema version 1, for SQLite 3.35+. The same tables as sql/mysql/001-rate-limit.sql.
--
-- store.install() runs this by itself. To run it by hand:
--   sqlite3 limits.sqlite < 001-rate-limit.sql
--
-- Times are microseconds since the Unix epoch, UTC. Keys are bytes and begin with the limiter's name, as in
-- global:203.0.113.9; CAST(rkey AS TEXT) shows them. WITHOUT ROWID makes the primary key the table itself, as it
-- is in InnoDB.

CREATE TABLE IF NOT EXISTS rate_keys (
  rkey BLOB NOT NULL,
  -- sum of all cost ever counted; goes round at 2^52
  total INTEGER NOT NULL DEFAULT 0,
  -- time of the newest write
  last_ts INTEGER NOT NULL DEFAULT 0,
  -- time of the newest event, where that is later than the write: a lease's event lies at its end; else 0
  stamp_ts INTEGER NOT NULL DEFAULT 0,
  -- how long events are kept: the longest window plus retention, in microseconds
  span INTEGER NOT NULL DEFAULT 0,
  -- events up to here are deleted
  pruned_ts INTEGER NOT NULL DEFAULT 0,
  -- remembered start of the window: its length, its first event, the total before that event
  memo_window INTEGER NOT NULL DEFAULT 0,
  memo_ts INTEGER NOT NULL DEFAULT 0,
  memo_base INTEGER NOT NULL DEFAULT 0,
  -- everything is denied until then
  blocked_until INTEGER NOT NULL DEFAULT 0,
  -- another one whenever past events were changed: what a process remembers of them holds while it is the same
  log_version INTEGER NOT NULL DEFAULT 0,
  -- when the whole key may be swept
  expires_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (rkey)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS ix_rate_keys_expires_at ON rate_keys (expires_at);

CREATE TABLE IF NOT EXISTS rate_events (
  rkey BLOB NOT NULL,
  ts INTEGER NOT NULL,
  -- cost admitted at ts
  hits INTEGER NOT NULL,
  -- the key's running total, this row included
  total INTEGER NOT NULL,
  PRIMARY KEY (rkey, ts)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS rate_limit_schema (
  id INTEGER NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  sweep_until INTEGER NOT NULL DEFAULT 0
);

INSERT INTO rate_limit_schema (id, version) VALUES (1, 1) ON CONFLICT DO NOTHING;
`,
  },
  {
    file: 'sql/sqlite/002-usage.sql',
    sql: `-- express-sql-rate-limit, schema version 2, for SQLite 3.35+. The same tables as sql/mysql/002-usage.sql. Comes after
-- 001-rate-limit.sql.
--
-- store.install() runs this by itself. It is needed only where a store has the option keepUsageSeconds.

-- What was admitted of a key in a quarter of an hour, of events that are deleted: an event is in rate_events or counted
-- here, never both. Days of every time zone consist of whole quarters of an hour.
CREATE TABLE IF NOT EXISTS rate_usage (
  rkey BLOB NOT NULL,
  -- when the quarter began, in microseconds since the Unix epoch
  slice_ts INTEGER NOT NULL,
  -- cost admitted in it
  cost INTEGER NOT NULL,
  -- when the row may be swept
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (rkey, slice_ts)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS ix_rate_usage_expires_at ON rate_usage (expires_at);

-- Whose usage is kept, so that whoever deletes events knows it: also a process or a command that was not told.
CREATE TABLE IF NOT EXISTS rate_usage_limits (
  -- of the limit
  name BLOB NOT NULL,
  -- for how long after its quarter of an hour
  keep_micros INTEGER NOT NULL,
  PRIMARY KEY (name)
) WITHOUT ROWID;

UPDATE rate_limit_schema SET version = 2 WHERE id = 1 AND version < 2;
`,
  },
]
