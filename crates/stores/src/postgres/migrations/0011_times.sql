-- When each try was due, claimed and sent, as far as anybody knows.
ALTER TABLE redeliver.redeliver_attempts ADD COLUMN due_at bigint;
ALTER TABLE redeliver.redeliver_attempts ADD COLUMN claimed_at bigint;
ALTER TABLE redeliver.redeliver_attempts ADD COLUMN sent_at bigint;
