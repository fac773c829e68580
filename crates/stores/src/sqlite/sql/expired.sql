SELECT *
FROM redeliver_messages INDEXED BY redeliver_expiring
WHERE expires_at IS NOT NULL AND state IN (0, 2) AND expires_at <= ?1
ORDER BY expires_at
LIMIT ?2
