SELECT *
FROM redeliver.redeliver_messages
WHERE dead_reason IS NOT NULL AND dismissed_at IS NULL
    AND ($1 IS NULL OR id < $1)
    AND ($2 IS NULL OR workspace = $2)
    AND ($3 IS NULL OR route = $3)
    AND ($5 IS NULL OR lane = $5)
ORDER BY id DESC
LIMIT $4
