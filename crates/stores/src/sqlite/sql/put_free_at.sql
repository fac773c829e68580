INSERT INTO redeliver_senders (workspace, sender, free_at)
VALUES (?1, ?2, ?3)
ON CONFLICT (workspace, sender) DO UPDATE SET free_at = excluded.free_at
