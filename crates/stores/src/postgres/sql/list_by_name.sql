-- Walks back in the index of a name that was asked for. Looks at $6 of that name. Where that doesn't fill the page, the
-- next one is told too, as the edge of what was seen.
(
    SELECT m.*, false AS is_edge
    FROM (
        SELECT id
        FROM redeliver.redeliver_contents
        WHERE ($1 IS NULL OR id < $1)
            AND ($2 IS NULL OR workspace = $2)
            AND ($3 IS NULL OR route = $3)
            AND ($5 IS NULL OR lane = $5)
        ORDER BY id DESC
        LIMIT $6
    ) AS seen
    CROSS JOIN LATERAL (
        SELECT *
        FROM redeliver.redeliver_messages
        WHERE id = seen.id
        LIMIT 1
    ) AS m
    WHERE ($8 IS NULL OR m.state = $8)
        AND ($9 OR m.dismissed_at IS NULL)
        AND ($10 IS NULL OR (m.parked_for IS NOT NULL) = $10)
        AND ($11 IS NULL OR (m.attempts <> 0) = $11)
        AND ($12 IS NULL OR (m.due_at <= $7) = $12)
    ORDER BY seen.id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT m.*, true
    FROM (
        SELECT id
        FROM redeliver.redeliver_contents
        WHERE ($1 IS NULL OR id < $1)
            AND ($2 IS NULL OR workspace = $2)
            AND ($3 IS NULL OR route = $3)
            AND ($5 IS NULL OR lane = $5)
        ORDER BY id DESC
        OFFSET $6
        LIMIT 1
    ) AS edge
    JOIN redeliver.redeliver_messages AS m ON m.id = edge.id
)
LIMIT $4
