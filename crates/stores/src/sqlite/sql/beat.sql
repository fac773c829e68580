INSERT INTO redeliver_instances (id, silent_at, beat_at)
VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET
    silent_at = max(silent_at, excluded.silent_at),
    beat_at = max(coalesce(beat_at, 0), excluded.beat_at)
