-- Those that are claimed are few at any time, and put in order each time. Goes from one holder to the next in the index.
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
),
claimed AS MATERIALIZED (
    SELECT m.id
    FROM holders
    CROSS JOIN LATERAL (
        SELECT id
        FROM redeliver.redeliver_messages
        WHERE instance = holders.instance
            AND lease_until IS NOT NULL
            AND ($1 IS NULL OR id < $1)
            AND ($2 IS NULL OR workspace = $2)
            AND ($3 IS NULL OR route = $3)
            AND ($5 IS NULL OR lane = $5)
        ORDER BY lease_until
    ) AS m
)
SELECT m.*, false AS is_edge
FROM (SELECT id FROM claimed ORDER BY id DESC LIMIT $4) AS first
JOIN redeliver.redeliver_messages AS m ON m.id = first.id
ORDER BY m.id DESC
