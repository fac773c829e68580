UPDATE redeliver_keys SET
    ended_state = ?4,
    attempts_before = ?5,
    attempts = ?6,
    generation = ?7,
    possible_duplicates = ?8,
    fence = ?9,
    expires_at = ?10
WHERE key = ?1 AND workspace = ?2 AND message_id = ?3
