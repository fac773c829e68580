UPDATE redeliver_messages SET
    state = 1,
    ready_at = NULL,
    fence = ?2,
    claim = ?2,
    instance = ?3,
    lease_until = ?4,
    started_at = NULL,
    cancel_requested = 0,
    first_sent_at = ?5
WHERE number = ?1
