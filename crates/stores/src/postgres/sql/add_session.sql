INSERT INTO redeliver.redeliver_sessions (digest, key_id, name, workspace, role, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (digest) DO NOTHING
