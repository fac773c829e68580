-- Goes from one holder to the next in the index: there are few, however many messages they hold.
WITH RECURSIVE holders (instance) AS (
    SELECT (SELECT min(instance) FROM redeliver_messages INDEXED BY redeliver_claimed WHERE lease_until IS NOT NULL)
    UNION ALL
    SELECT (
        SELECT min(instance)
        FROM redeliver_messages INDEXED BY redeliver_claimed
        WHERE lease_until IS NOT NULL AND instance > holders.instance
    )
    FROM holders
    WHERE holders.instance IS NOT NULL
)
SELECT m.*
FROM holders
CROSS JOIN redeliver_messages AS m INDEXED BY redeliver_claimed ON m.instance = holders.instance
WHERE m.lease_until <= CASE
        WHEN EXISTS (SELECT 1 FROM redeliver_instances AS i WHERE i.id = holders.instance AND i.silent_at > ?1)
        THEN ?1
        ELSE 9223372036854775807
    END
LIMIT ?2
