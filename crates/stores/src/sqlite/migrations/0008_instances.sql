-- What each engine says of itself, and when it was heard of.
ALTER TABLE redeliver_instances ADD COLUMN name TEXT;
ALTER TABLE redeliver_instances ADD COLUMN version TEXT;
ALTER TABLE redeliver_instances ADD COLUMN started_at INTEGER;
ALTER TABLE redeliver_instances ADD COLUMN beat_at INTEGER;
