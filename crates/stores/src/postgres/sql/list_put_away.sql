SELECT *
FROM redeliver.redeliver_messages
WHERE put_away_at IS NOT NULL
    AND state = $2
    AND ($1 IS NULL OR id < $1)
    AND ($4 IS NULL OR lane = $4)
ORDER BY id DESC
LIMIT $3
