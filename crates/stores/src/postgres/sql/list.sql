-- Walks back from the newest, or from where the last page ended. Looks at $6 of them. Where that doesn't fill the page,
-- the next one is told too, as the edge of what was seen.
(
    SELECT *, false AS is_edge
    FROM (
        SELECT *
        FROM redeliver.redeliver_messages
        WHERE $1 IS NULL OR id < $1
        ORDER BY id DESC
        LIMIT $6
    ) AS seen
    WHERE $9 OR dismissed_at IS NULL
    ORDER BY id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT m.*, true
    FROM (
        SELECT id
        FROM redeliver.redeliver_messages
        WHERE $1 IS NULL OR id < $1
        ORDER BY id DESC
        OFFSET $6
        LIMIT 1
    ) AS edge
    JOIN redeliver.redeliver_messages AS m ON m.id = edge.id
)
LIMIT $4
