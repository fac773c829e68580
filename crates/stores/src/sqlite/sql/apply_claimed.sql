UPDATE redeliver_messages SET
    fence = ?2,
    cancel_requested = ?3
WHERE id = ?1 AND fence = ?4
