-- express-sql-rate-limit, schema version 2, for MySQL 5.7+ and MariaDB 10.3+. Comes after 001-rate-limit.sql.
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
