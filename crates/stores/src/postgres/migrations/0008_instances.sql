-- What each engine says of itself, and when it was heard of.
ALTER TABLE redeliver.redeliver_instances ADD COLUMN name text COLLATE "C";
ALTER TABLE redeliver.redeliver_instances ADD COLUMN version text COLLATE "C";
ALTER TABLE redeliver.redeliver_instances ADD COLUMN started_at bigint;
ALTER TABLE redeliver.redeliver_instances ADD COLUMN beat_at bigint;
