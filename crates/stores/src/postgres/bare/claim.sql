WITH due AS MATERIALIZED (
    SELECT id
    FROM redeliver.redeliver_messages
    WHERE route = $1 AND lane = $2 AND ready_at <= $3
    ORDER BY ready_at
    LIMIT $4
    FOR UPDATE SKIP LOCKED
),
claimed AS (
    UPDATE redeliver.redeliver_messages SET
        state = 1,
        ready_at = NULL,
        fence = fence + 1,
        claim = fence + 1,
        instance = 1,
        lease_until = $3 + 60000
    WHERE id = ANY (ARRAY (SELECT id FROM due))
    RETURNING id, fence
)
SELECT claimed.id, claimed.fence, c.bytes
FROM claimed
JOIN redeliver.redeliver_contents AS c ON c.id = claimed.id
