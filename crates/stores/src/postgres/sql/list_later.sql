-- What waits for a time after $7, tried before or not ($11), as `list_due` finds the due.
WITH lanes AS MATERIALIZED (
    SELECT DISTINCT route, lane
    FROM redeliver.redeliver_tallies
    WHERE state = 0
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
),
later AS MATERIALIZED (
    SELECT id
    FROM (
        SELECT m.id
        FROM lanes
        CROSS JOIN LATERAL (
            SELECT id
            FROM redeliver.redeliver_messages
            WHERE route = lanes.route
                AND lane = lanes.lane
                AND ready_at > $7
                AND ($1 IS NULL OR id < $1)
                AND ($2 IS NULL OR workspace = $2)
                AND (attempts <> 0) = $11
            ORDER BY ready_at
        ) AS m
        UNION ALL
        SELECT m.id
        FROM lanes
        CROSS JOIN LATERAL (
            SELECT id
            FROM redeliver.redeliver_messages
            WHERE route = lanes.route
                AND lane = lanes.lane
                AND suspect_at > $7
                AND ($1 IS NULL OR id < $1)
                AND ($2 IS NULL OR workspace = $2)
                AND (attempts <> 0) = $11
            ORDER BY suspect_at
        ) AS m
    ) AS waiting
    LIMIT $6
)
SELECT m.*, (SELECT count(*) FROM later) = $6 AS is_edge
FROM (SELECT id FROM later ORDER BY id DESC LIMIT $4) AS first
JOIN redeliver.redeliver_messages AS m ON m.id = first.id
ORDER BY m.id DESC
