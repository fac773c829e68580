-- What waits for its time, tried before or not ($11), and whether its time has come by $7 ($12). Looks at $6 of them. Where
-- that doesn't fill the page, the next one is told too, as the edge of what was seen.
(
    SELECT *, false AS is_edge
    FROM (
        (
            SELECT *
            FROM redeliver.redeliver_messages
            WHERE state = 0 AND parked_for IS NULL AND attempts = 0 AND ($11 IS NULL OR NOT $11)
                AND ($1 IS NULL OR id < $1)
            ORDER BY id DESC
            LIMIT $6
        )
        UNION ALL
        (
            SELECT *
            FROM redeliver.redeliver_messages
            WHERE state = 0 AND parked_for IS NULL AND attempts <> 0 AND ($11 IS NULL OR $11)
                AND ($1 IS NULL OR id < $1)
            ORDER BY id DESC
            LIMIT $6
        )
        ORDER BY id DESC
        LIMIT $6
    ) AS seen
    WHERE ($12 IS NULL OR (due_at <= $7) = $12)
        AND ($2 IS NULL OR workspace = $2)
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
    ORDER BY id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT m.*, true
    FROM (
        (
            SELECT id
            FROM redeliver.redeliver_messages
            WHERE state = 0 AND parked_for IS NULL AND attempts = 0 AND ($11 IS NULL OR NOT $11)
                AND ($1 IS NULL OR id < $1)
            ORDER BY id DESC
            LIMIT $6 + 1
        )
        UNION ALL
        (
            SELECT id
            FROM redeliver.redeliver_messages
            WHERE state = 0 AND parked_for IS NULL AND attempts <> 0 AND ($11 IS NULL OR $11)
                AND ($1 IS NULL OR id < $1)
            ORDER BY id DESC
            LIMIT $6 + 1
        )
        ORDER BY id DESC
        OFFSET $6
        LIMIT 1
    ) AS edge
    JOIN redeliver.redeliver_messages AS m ON m.id = edge.id
)
LIMIT $4
