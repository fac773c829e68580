INSERT INTO redeliver_instances (id, silent_at)
VALUES (?1, ?2)
ON CONFLICT (id) DO UPDATE SET silent_at = max(silent_at, excluded.silent_at)
