-- The lease is its holder's: it may have been renewed or started since this change was made.
WITH given AS MATERIALIZED (
    SELECT *
    FROM unnest($1, $2, $3, $4) AS given (id, fence, cancel_requested, expected_fence)
)
UPDATE redeliver.redeliver_messages AS m SET
    fence = given.fence,
    cancel_requested = given.cancel_requested
FROM given
WHERE m.id = ANY (ARRAY (SELECT id FROM given))
    AND m.id = given.id
    AND m.fence = given.expected_fence
    AND m.claim IS NOT NULL
RETURNING m.id
