-- What waits and whose time has come by $7: lane by lane, because that is how the index has it, and in two kinds,
-- because each has an index of its own. Whoever waits is in a tally. Puts $6 of them in order; where there are as many,
-- there may be more, and the page is none.
WITH lanes AS MATERIALIZED (
    SELECT DISTINCT route, lane
    FROM redeliver.redeliver_tallies
    WHERE state = 0
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
),
due AS MATERIALIZED (
    SELECT id
    FROM (
        SELECT m.id
        FROM lanes
        CROSS JOIN LATERAL (
            SELECT id
            FROM redeliver.redeliver_messages
            WHERE route = lanes.route
                AND lane = lanes.lane
                AND ready_at <= $7
                AND ($1 IS NULL OR id < $1)
                AND ($2 IS NULL OR workspace = $2)
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
                AND suspect_at <= $7
                AND ($1 IS NULL OR id < $1)
                AND ($2 IS NULL OR workspace = $2)
            ORDER BY suspect_at
        ) AS m
    ) AS waiting
    LIMIT $6
)
SELECT m.*, (SELECT count(*) FROM due) = $6 AS is_edge
FROM (SELECT id FROM due ORDER BY id DESC LIMIT $4) AS first
JOIN redeliver.redeliver_messages AS m ON m.id = first.id
ORDER BY m.id DESC
