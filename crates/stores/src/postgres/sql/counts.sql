-- Totals and parked ones are exact: they are the sum of what every transaction added. The due are counted in their
-- indexes, up to $2 in each lane and kind; beyond that, the number is a floor.
WITH totals AS MATERIALIZED (
    SELECT route, lane, state, dead_reason,
        sum(delta)::bigint AS total,
        coalesce(sum(delta) FILTER (WHERE is_parked), 0)::bigint AS parked
    FROM redeliver.redeliver_tallies
    GROUP BY route, lane, state, dead_reason
    HAVING sum(delta) > 0
)
SELECT t.route, t.lane, t.state, t.dead_reason, t.total, coalesce(ready.due + suspects.due, 0), t.parked
FROM totals AS t
LEFT JOIN LATERAL (
    SELECT count(*) AS due
    FROM (
        SELECT 1
        FROM redeliver.redeliver_messages AS m
        WHERE m.route = t.route AND m.lane = t.lane AND m.ready_at <= $1
        LIMIT $2
    ) AS first
) AS ready ON t.state = 0
LEFT JOIN LATERAL (
    SELECT count(*) AS due
    FROM (
        SELECT 1
        FROM redeliver.redeliver_messages AS m
        WHERE m.route = t.route AND m.lane = t.lane AND m.suspect_at <= $1
        LIMIT $2
    ) AS first
) AS suspects ON t.state = 0
