SELECT id, name, digest, workspace, role, created_at, revoked_at
FROM redeliver.redeliver_access_keys
WHERE id = $1
