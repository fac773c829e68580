SELECT m.*
FROM redeliver.redeliver_keys AS k
JOIN redeliver.redeliver_messages AS m ON m.id = k.message_id
WHERE k.key = $8
    AND ($1 IS NULL OR m.id < $1)
    AND ($6 IS NULL OR m.workspace = $6)
    AND ($7 IS NULL OR m.route = $7)
    AND ($2 IS NULL OR m.state = $2)
    AND ($3 OR m.dismissed_at IS NULL)
    AND ($5 IS NULL OR m.lane = $5)
ORDER BY m.id DESC
LIMIT $4
