-- Looks at $6 of them. Where that doesn't fill the page, the next one is told too, as the edge of what was seen.
(
    SELECT *, false AS is_edge
    FROM (
        SELECT *
        FROM redeliver.redeliver_messages
        WHERE state = 5 AND ($1 IS NULL OR id < $1)
        ORDER BY id DESC
        LIMIT $6
    ) AS seen
    WHERE ($2 IS NULL OR workspace = $2)
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
    ORDER BY id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT m.*, true
    FROM (
        SELECT id
        FROM redeliver.redeliver_messages
        WHERE state = 5 AND ($1 IS NULL OR id < $1)
        ORDER BY id DESC
        OFFSET $6
        LIMIT 1
    ) AS edge
    JOIN redeliver.redeliver_messages AS m ON m.id = edge.id
)
LIMIT $4
