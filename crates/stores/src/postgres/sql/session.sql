-- A session that was opened with a key lives no longer than the key.
SELECT s.digest, s.key_id, s.name, s.workspace, s.role, s.created_at, s.expires_at
FROM redeliver.redeliver_sessions AS s
LEFT JOIN redeliver.redeliver_access_keys AS k ON k.id = s.key_id
WHERE s.digest = $1
    AND s.expires_at > $2
    AND (s.key_id IS NULL OR (k.id IS NOT NULL AND k.revoked_at IS NULL))
