INSERT INTO redeliver_keys (key, workspace, message_id, hash)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (key, workspace) DO NOTHING
