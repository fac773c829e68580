SELECT *
FROM redeliver.redeliver_messages
WHERE expires_at <= $1 AND ended_at IS NULL AND lease_until IS NULL
ORDER BY expires_at
LIMIT $2
