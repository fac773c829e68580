DELETE FROM redeliver_limits
WHERE free_at_us <= ?1
    AND NOT EXISTS (
        SELECT 1
        FROM redeliver_limit_shares AS s
        WHERE s.destination = redeliver_limits.destination
    )
