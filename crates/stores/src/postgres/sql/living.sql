SELECT id, name, version, started_at, beat_at, (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM redeliver.redeliver_messages
        WHERE instance = redeliver_instances.id AND lease_until IS NOT NULL
        LIMIT $2
    ) AS held
)
FROM redeliver.redeliver_instances
WHERE silent_at > $1
ORDER BY started_at, id
