SELECT 1
FROM redeliver.redeliver_attempts_others
WHERE at >= $1 AND at < $2
LIMIT 1
