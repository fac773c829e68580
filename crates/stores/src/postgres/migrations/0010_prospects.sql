-- Since when nothing goes out to a prospect until a person resumes them.
ALTER TABLE redeliver.redeliver_prospects ADD COLUMN paused_at bigint;
