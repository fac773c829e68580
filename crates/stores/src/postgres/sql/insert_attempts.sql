INSERT INTO redeliver.redeliver_attempts (message_id, generation, attempt, verdict, at, instance, failure)
SELECT *
FROM unnest($1, $2, $3, $4, $5, $6, $7)
