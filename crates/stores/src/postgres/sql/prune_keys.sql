DELETE FROM redeliver.redeliver_keys
WHERE (key, workspace) IN (
    SELECT key, workspace
    FROM redeliver.redeliver_keys
    WHERE expires_at <= $1
    ORDER BY expires_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
