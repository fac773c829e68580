INSERT INTO redeliver.redeliver_attempts (
    message_id, number, generation, attempt, verdict, at, instance, failure, due_at, claimed_at, sent_at
)
SELECT message_id, number, generation, attempt, verdict, at, instance, failure, due_at, claimed_at, sent_at
FROM redeliver.redeliver_attempts_{day} AS a
WHERE EXISTS (SELECT 1 FROM redeliver.redeliver_messages AS m WHERE m.id = a.message_id)
