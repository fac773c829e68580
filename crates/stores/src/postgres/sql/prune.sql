-- Messages go with their contents and corrections, and are counted no more; their keys remember what they had come to. Histories go by
-- the day.
WITH put_away AS MATERIALIZED (
    SELECT id
    FROM redeliver.redeliver_messages
    WHERE route = $1 AND put_away_at < $2
    ORDER BY put_away_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM redeliver.redeliver_messages
    WHERE id = ANY (ARRAY (SELECT id FROM put_away))
    RETURNING *
),
contents AS (
    DELETE FROM redeliver.redeliver_contents
    WHERE id = ANY (ARRAY (SELECT id FROM put_away))
),
edits AS (
    DELETE FROM redeliver.redeliver_edits
    WHERE message_id = ANY (ARRAY (SELECT id FROM put_away))
),
ended AS (
    UPDATE redeliver.redeliver_keys AS k SET
        ended_state = gone.state,
        attempts_before = gone.attempts_before,
        attempts = gone.attempts,
        generation = gone.generation,
        possible_duplicates = gone.possible_duplicates,
        fence = gone.fence,
        expires_at = $4
    FROM gone
    WHERE k.key = gone.key AND k.workspace = gone.workspace AND k.message_id = gone.id
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, dead_reason, is_parked, delta)
    SELECT route, lane, state, dead_reason, false, -count(*)
    FROM gone
    WHERE dismissed_at IS NULL
    GROUP BY route, lane, state, dead_reason
)
SELECT count(*) FROM gone
