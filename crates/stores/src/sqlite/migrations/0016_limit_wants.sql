-- Until when an engine counts as one that wants more permits than it holds.
ALTER TABLE redeliver_limit_shares ADD COLUMN wants_until INTEGER NOT NULL DEFAULT 0;
