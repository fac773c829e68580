UPDATE redeliver.redeliver_keys SET
    message_id = $3,
    hash = $4,
    ended_state = NULL,
    attempts_before = NULL,
    attempts = NULL,
    generation = NULL,
    possible_duplicates = NULL,
    fence = NULL,
    expires_at = NULL
WHERE key = $1 AND workspace = $2
