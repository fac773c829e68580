INSERT INTO redeliver.redeliver_attempts (message_id, generation, attempt, verdict, at, instance, failure)
SELECT $1, $2, $3, $4, $5, $6, $7
WHERE EXISTS (SELECT 1 FROM redeliver.redeliver_messages WHERE id = $1)
