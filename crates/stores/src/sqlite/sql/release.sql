UPDATE redeliver_messages SET
    parked_for = NULL,
    fence = fence + 1
WHERE id IN (
    SELECT id
    FROM redeliver_messages INDEXED BY redeliver_parked
    WHERE parked_for = ?1
    ORDER BY due_at
    LIMIT ?2
)
