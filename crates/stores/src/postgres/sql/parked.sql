-- Goes from one gate to the next in the index: there are few, however many messages wait for them.
WITH RECURSIVE gates (key) AS (
    SELECT (SELECT min(parked_for) FROM redeliver.redeliver_messages WHERE parked_for IS NOT NULL)
    UNION ALL
    SELECT (
        SELECT min(parked_for)
        FROM redeliver.redeliver_messages
        WHERE parked_for IS NOT NULL AND parked_for > gates.key
    )
    FROM gates
    WHERE gates.key IS NOT NULL
)
SELECT key FROM gates WHERE key IS NOT NULL
