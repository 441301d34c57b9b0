-- express-sql-rate-limit, schema version 1, for SQLite 3.35+. The same tables as sql/mysql/001-rate-limit.sql.
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
