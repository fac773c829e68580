WITH held AS MATERIALIZED (
    SELECT *
    FROM unnest($1, $2) AS held (id, claim)
)
UPDATE redeliver.redeliver_messages AS m SET lease_until = greatest(m.lease_until, $3)
FROM held
WHERE m.id = ANY (ARRAY (SELECT id FROM held))
    AND m.id = held.id
    AND m.claim = held.claim
RETURNING m.id, m.claim
