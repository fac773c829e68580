SELECT id, name, version, started_at, beat_at, (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM redeliver_messages INDEXED BY redeliver_claimed
        WHERE instance = redeliver_instances.id AND lease_until IS NOT NULL
        LIMIT ?2
    )
)
FROM redeliver_instances
WHERE silent_at > ?1
ORDER BY started_at, id
