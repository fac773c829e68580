-- What the other engines that count have of the permits, and the last call of this one.
SELECT
    coalesce(sum(s.held) FILTER (WHERE s.instance <> $2 AND s.counts), 0)::bigint,
    count(*) FILTER (WHERE s.instance <> $2 AND s.counts AND (s.held > 0 OR s.wants_until > $3)),
    count(*) FILTER (WHERE s.instance <> $2 AND s.counts AND s.wants_until > $3),
    coalesce(max(s.turn) FILTER (WHERE s.instance = $2), 0)
FROM (
    SELECT instance, held, turn, wants_until, (
        until_at > $3
        OR EXISTS (
            SELECT 1
            FROM redeliver.redeliver_instances AS i
            WHERE i.id = redeliver_limit_shares.instance AND i.silent_at > $3
        )
    ) AS counts
    FROM redeliver.redeliver_limit_shares
    WHERE destination = $1
) AS s
