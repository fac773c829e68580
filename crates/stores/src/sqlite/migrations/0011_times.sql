-- When each try was due, claimed and sent, as far as anybody knows.
ALTER TABLE redeliver_attempts ADD COLUMN due_at INTEGER;
ALTER TABLE redeliver_attempts ADD COLUMN claimed_at INTEGER;
ALTER TABLE redeliver_attempts ADD COLUMN sent_at INTEGER;
