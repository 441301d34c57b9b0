-- express-sql-rate-limit, schema version 2, for SQLite 3.35+. The same tables as sql/mysql/002-usage.sql. Comes after
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
