-- A message that is gone has no history, though rows of it may wait for their day to go.
SELECT generation, attempt, verdict, at, instance, failure, due_at, claimed_at, sent_at
FROM redeliver.redeliver_attempts
WHERE message_id = $1
    AND EXISTS (SELECT 1 FROM redeliver.redeliver_messages WHERE id = $1)
ORDER BY number
