DELETE FROM redeliver.redeliver_limits AS l
WHERE l.free_at_us <= $1
    AND NOT EXISTS (
        SELECT 1
        FROM redeliver.redeliver_limit_shares AS s
        WHERE s.destination = l.destination
    )
