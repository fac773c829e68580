-- $1 messages, of which the first hundredth is due. Of the fifth that follows, each hundredth has another status, and of
-- each 20,000 one has another workspace, one another route and one another lane. All others, and so the newest, are due a
-- week after $2; or, if $3, they have been delivered.
INSERT INTO redeliver.redeliver_messages (
    id, workspace, route, lane, state, due_at, ready_at, fence, attempts, losses, parked_for, instance, claim, lease_until,
    cancel_requested, handed_off_at, report_by, ended_at, put_away_at, dead_reason, dismissed_at, cancelled_for, key,
    scheduled_for, created_at, generation, attempts_before, unconfirmed, possible_duplicates, is_dead_letter
)
SELECT
    (
        lpad(to_hex($2 - ($1 - n) / 10), 12, '0') || '7' || lpad(to_hex(n % 10), 3, '0') || '8'
        || lpad(to_hex((n * 7919) % 68719476736), 15, '0')
    )::uuid,
    CASE WHEN is_of_fifth AND n % 20000 = 7 THEN 'rare' ELSE 'default' END,
    CASE WHEN is_of_fifth AND n % 20000 = 8 THEN 'rare' ELSE 'bench' END,
    CASE WHEN is_of_fifth AND n % 20000 = 9 THEN 0 ELSE 2 END,
    state,
    due_at,
    CASE WHEN state = 0 AND kind <> 8 THEN due_at END,
    1,
    CASE WHEN kind = 1 THEN 1 ELSE 0 END,
    0,
    CASE WHEN kind = 8 THEN 'pause:route:bench' END,
    CASE WHEN state = 1 THEN 1 END,
    CASE WHEN state = 1 THEN 1 END,
    CASE WHEN state = 1 THEN $2 + 600000 END,
    false,
    CASE WHEN state = 2 THEN $2 END,
    CASE WHEN state = 2 THEN $2 + 600000 END,
    CASE WHEN state > 2 THEN $2 END,
    CASE WHEN state IN (3, 5) OR kind = 6 THEN $2 END,
    CASE WHEN state = 4 THEN 1 END,
    CASE WHEN kind = 6 THEN $2 END,
    CASE WHEN state = 5 THEN 'because' END,
    CASE WHEN n % 1000 = 0 THEN 'key-' || n END,
    due_at,
    $2,
    0,
    0,
    0,
    0,
    false
FROM generate_series(0, $1 - 1) AS n
CROSS JOIN LATERAL (SELECT n < $1 / 100 AS is_due, n >= $1 / 100 AND n < $1 / 5 AS is_of_fifth) AS place
CROSS JOIN LATERAL (SELECT CASE WHEN is_of_fifth THEN n % 100 WHEN is_due OR NOT $3 THEN 99 ELSE 4 END AS kind) AS kinds
CROSS JOIN LATERAL (
    SELECT
        CASE kind WHEN 2 THEN 1 WHEN 3 THEN 2 WHEN 4 THEN 3 WHEN 5 THEN 4 WHEN 6 THEN 4 WHEN 7 THEN 5 ELSE 0 END::smallint
            AS state,
        CASE WHEN is_due THEN $2 - 60000 ELSE $2 + 604800000 + n END AS due_at
) AS times
