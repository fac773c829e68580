-- Makes few rows of many, if there are many. The sum stays what it was, whoever looks.
WITH many AS MATERIALIZED (
    SELECT ctid
    FROM redeliver.redeliver_tallies
    WHERE $1 < (SELECT count(*) FROM (SELECT 1 FROM redeliver.redeliver_tallies LIMIT $1 + 1) AS first)
    LIMIT $2
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM redeliver.redeliver_tallies
    WHERE ctid = ANY (ARRAY (SELECT ctid FROM many))
    RETURNING *
)
INSERT INTO redeliver.redeliver_tallies (route, lane, state, dead_reason, is_parked, delta)
SELECT route, lane, state, dead_reason, is_parked, sum(delta)
FROM gone
GROUP BY route, lane, state, dead_reason, is_parked
HAVING sum(delta) <> 0
