-- Walks back in the index of the names that were asked for.
SELECT m.*
FROM redeliver.redeliver_contents AS c
JOIN redeliver.redeliver_messages AS m ON m.id = c.id
WHERE ($1 IS NULL OR c.id < $1)
    AND ($6 IS NULL OR c.workspace = $6)
    AND ($7 IS NULL OR c.route = $7)
    AND ($2 IS NULL OR m.state = $2)
    AND ($3 OR m.dismissed_at IS NULL)
    AND ($5 IS NULL OR m.lane = $5)
ORDER BY c.id DESC
LIMIT $4
