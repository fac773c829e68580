DELETE FROM redeliver.redeliver_limit_shares AS s
WHERE s.until_at <= $1
    AND (
        s.held = 0
        OR NOT EXISTS (
            SELECT 1
            FROM redeliver.redeliver_instances AS i
            WHERE i.id = s.instance AND i.silent_at > $2
        )
    )
