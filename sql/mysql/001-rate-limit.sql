-- express-sql-rate-limit, schema version 1, for MySQL 5.7+ and MariaDB 10.3+.
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
