-- Walks back from the newest, or from where the last page ended.
SELECT *
FROM redeliver.redeliver_messages
WHERE ($1 IS NULL OR id < $1)
    AND ($2 IS NULL OR state = $2)
    AND ($3 OR dismissed_at IS NULL)
    AND ($5 IS NULL OR lane = $5)
ORDER BY id DESC
LIMIT $4
