INSERT INTO redeliver.redeliver_access_keys (id, name, digest, workspace, role, created_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO NOTHING
