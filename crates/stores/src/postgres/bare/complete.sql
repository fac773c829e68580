WITH given AS MATERIALIZED (
    SELECT *
    FROM unnest($1, $2) AS given (id, fence)
)
UPDATE redeliver.redeliver_messages AS m SET
    state = 3,
    fence = given.fence + 1,
    attempts = 1,
    settled_claim = given.fence,
    ended_at = $3,
    put_away_at = $3,
    instance = NULL,
    claim = NULL,
    lease_until = NULL
FROM given
WHERE m.id = ANY (ARRAY (SELECT id FROM given)) AND m.id = given.id AND m.fence = given.fence
