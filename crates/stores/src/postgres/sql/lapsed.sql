-- Goes from one holder to the next in the index: there are few, however many messages they hold.
WITH RECURSIVE holders (instance) AS (
    SELECT (SELECT min(instance) FROM redeliver.redeliver_messages WHERE lease_until IS NOT NULL)
    UNION ALL
    SELECT (
        SELECT min(instance)
        FROM redeliver.redeliver_messages
        WHERE lease_until IS NOT NULL AND instance > holders.instance
    )
    FROM holders
    WHERE holders.instance IS NOT NULL
)
SELECT m.*
FROM holders
CROSS JOIN LATERAL (
    SELECT *
    FROM redeliver.redeliver_messages
    WHERE instance = holders.instance
        AND lease_until IS NOT NULL
        AND lease_until <= CASE
            WHEN EXISTS (
                SELECT 1
                FROM redeliver.redeliver_instances AS i
                WHERE i.id = holders.instance AND i.silent_at > $1
            )
            THEN $1
            ELSE 9223372036854775807
        END
    ORDER BY lease_until
    LIMIT $2
) AS m
LIMIT $2
