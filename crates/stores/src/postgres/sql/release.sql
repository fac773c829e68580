WITH parked AS MATERIALIZED (
    SELECT id
    FROM redeliver.redeliver_messages
    WHERE parked_for = $1
    ORDER BY due_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
),
released AS (
    UPDATE redeliver.redeliver_messages SET
        parked_for = NULL,
        ready_at = CASE WHEN losses = 0 THEN due_at END,
        suspect_at = CASE WHEN losses <> 0 THEN due_at END,
        fence = fence + 1
    WHERE id = ANY (ARRAY (SELECT id FROM parked))
    RETURNING route, lane
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, is_parked, delta)
    SELECT released.route, released.lane, 0, moved.is_parked, sum(moved.delta)
    FROM released
    CROSS JOIN (VALUES (true, -1), (false, 1)) AS moved (is_parked, delta)
    GROUP BY released.route, released.lane, moved.is_parked
)
SELECT count(*) FROM released
