DELETE FROM redeliver_limit_shares
WHERE until_at <= ?1
    AND (
        held = 0
        OR NOT EXISTS (
            SELECT 1
            FROM redeliver_instances AS i
            WHERE i.id = redeliver_limit_shares.instance AND i.silent_at > ?2
        )
    )
