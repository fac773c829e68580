-- Takes what nobody else is taking at this moment, and says when to look for more: at once if the limit was reached,
-- otherwise when the next one is due. Rows are found again by their ids in an array, which no planner can turn
-- into a scan of the table. Of each it says only what nobody knows who claims.
WITH due AS MATERIALIZED (
    SELECT id, suspect_at
    FROM redeliver.redeliver_messages
    WHERE route = $1 AND lane = $2 AND suspect_at <= $3
    ORDER BY suspect_at
    LIMIT $4
    FOR UPDATE SKIP LOCKED
),
claimed AS (
    UPDATE redeliver.redeliver_messages SET
        state = 1,
        suspect_at = NULL,
        fence = fence + 1,
        claim = fence + 1,
        instance = $5,
        lease_until = $6,
        started_at = NULL,
        cancel_requested = false,
        first_sent_at = coalesce(first_sent_at, $7)
    WHERE id = ANY (ARRAY (SELECT id FROM due))
    RETURNING
        id, workspace, due_at, fence, attempts, losses, key, scheduled_for, created_at, expires_at, generation,
        attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim, last_error, recipients,
        is_dead_letter, first_sent_at
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, is_parked, delta)
    SELECT $1, $2, moved.state, false, moved.delta * (SELECT count(*) FROM due)
    FROM (VALUES (0::smallint, -1), (1::smallint, 1)) AS moved (state, delta)
    WHERE EXISTS (SELECT 1 FROM due)
),
next AS (
    SELECT CASE
        WHEN (SELECT count(*) FROM due) < $4 THEN (
            SELECT suspect_at
            FROM redeliver.redeliver_messages
            WHERE route = $1 AND lane = $2 AND suspect_at > $3
            ORDER BY suspect_at
            LIMIT 1
        )
        ELSE coalesce((SELECT max(suspect_at) FROM due), $3)
    END AS due_at
)
SELECT m.*, c.target, c.attributes, c.headers, c.content_type, c.bytes, next.due_at
FROM next
LEFT JOIN claimed AS m ON true
LEFT JOIN redeliver.redeliver_contents AS c ON c.id = m.id
