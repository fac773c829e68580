INSERT INTO redeliver_suppressions (workspace, address, reason, since)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (workspace, address) DO NOTHING
