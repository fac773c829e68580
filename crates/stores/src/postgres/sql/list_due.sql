-- What waits and whose time has come by $6: lane by lane, because that is how the index has it, and in two kinds,
-- because each has an index of its own. Whoever waits is in a tally.
WITH lanes AS MATERIALIZED (
    SELECT DISTINCT route, lane
    FROM redeliver.redeliver_tallies
    WHERE state = 0
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
)
SELECT *
FROM (
    SELECT m.*
    FROM lanes
    CROSS JOIN LATERAL (
        SELECT *
        FROM redeliver.redeliver_messages
        WHERE route = lanes.route
            AND lane = lanes.lane
            AND ready_at <= $6
            AND ($1 IS NULL OR id < $1)
            AND ($2 IS NULL OR workspace = $2)
        ORDER BY id DESC
        LIMIT $4
    ) AS m
    UNION ALL
    SELECT m.*
    FROM lanes
    CROSS JOIN LATERAL (
        SELECT *
        FROM redeliver.redeliver_messages
        WHERE route = lanes.route
            AND lane = lanes.lane
            AND suspect_at <= $6
            AND ($1 IS NULL OR id < $1)
            AND ($2 IS NULL OR workspace = $2)
        ORDER BY id DESC
        LIMIT $4
    ) AS m
) AS due
ORDER BY id DESC
LIMIT $4
