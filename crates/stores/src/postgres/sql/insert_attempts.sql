INSERT INTO redeliver.redeliver_attempts (
    message_id, generation, attempt, verdict, at, instance, failure, due_at, claimed_at, sent_at
)
SELECT *
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
