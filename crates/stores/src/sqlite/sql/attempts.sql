SELECT generation, attempt, verdict, at, instance, failure, due_at, claimed_at, sent_at
FROM redeliver_attempts
WHERE message_id = ?1
ORDER BY number
