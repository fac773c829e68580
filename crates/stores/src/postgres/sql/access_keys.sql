SELECT id, name, digest, workspace, role, created_at, revoked_at
FROM redeliver.redeliver_access_keys
ORDER BY created_at, id
