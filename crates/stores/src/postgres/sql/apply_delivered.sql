-- A delivery by whoever has the message, which settles that claim and changes nothing else of it.
WITH given AS MATERIALIZED (
    SELECT *
    FROM unnest($1, $2, $3, $4, $5) AS given (id, expected_fence, attempts, ended_at, receipt)
),
written AS (
    UPDATE redeliver.redeliver_messages AS m SET
        state = 3,
        fence = m.fence + 1,
        attempts = given.attempts,
        settled_claim = m.claim,
        ended_at = given.ended_at,
        put_away_at = given.ended_at,
        receipt = given.receipt,
        recipients = NULL,
        instance = NULL,
        claim = NULL,
        lease_until = NULL,
        started_at = NULL,
        cancel_requested = false
    FROM given
    WHERE m.id = ANY (ARRAY (SELECT id FROM given))
        AND m.id = given.id
        AND m.fence = given.expected_fence
        AND m.claim IS NOT NULL
    RETURNING m.id, m.route, m.lane
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, is_parked, delta)
    SELECT counted.route, counted.lane, moved.state, false, moved.delta * counted.count
    FROM (SELECT route, lane, count(*) AS count FROM written GROUP BY route, lane) AS counted
    CROSS JOIN (VALUES (1::smallint, -1), (3::smallint, 1)) AS moved (state, delta)
)
SELECT array_agg(id) FROM written
