SELECT generation, attempt, verdict, at, instance, failure
FROM redeliver_attempts
WHERE message_id = ?1
ORDER BY number
