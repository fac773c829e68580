UPDATE redeliver_messages SET
    state = 3,
    fence = ?2,
    attempts = ?3,
    settled_claim = ?4,
    ended_at = ?5,
    put_away_at = ?5,
    receipt = ?6,
    recipients = NULL,
    instance = NULL,
    claim = NULL,
    lease_until = NULL,
    started_at = NULL,
    cancel_requested = 0
WHERE id = ?1 AND fence = ?7
