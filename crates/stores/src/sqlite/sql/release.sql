UPDATE redeliver_messages SET
    parked_for = NULL,
    ready_at = CASE WHEN losses = 0 THEN due_at END,
    suspect_at = CASE WHEN losses > 0 THEN due_at END,
    fence = fence + 1
WHERE number IN (
    SELECT number
    FROM redeliver_messages INDEXED BY redeliver_parked
    WHERE parked_for = ?1
    ORDER BY due_at
    LIMIT ?2
)
