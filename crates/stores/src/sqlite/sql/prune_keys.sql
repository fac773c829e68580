DELETE FROM redeliver_keys
WHERE (key, workspace) IN (
    SELECT key, workspace
    FROM redeliver_keys INDEXED BY redeliver_keys_expiring
    WHERE expires_at IS NOT NULL AND expires_at <= ?1
    ORDER BY expires_at
    LIMIT ?2
)
