-- The permits of other engines that count, and the last call of this one.
SELECT
    coalesce(sum(s.held) FILTER (
        WHERE s.instance <> ?2
            AND (
                s.until_at > ?3
                OR EXISTS (
                    SELECT 1
                    FROM redeliver_instances AS i
                    WHERE i.id = s.instance AND i.silent_at > ?3
                )
            )
    ), 0),
    coalesce(max(s.turn) FILTER (WHERE s.instance = ?2), 0)
FROM redeliver_limit_shares AS s
WHERE s.destination = ?1
