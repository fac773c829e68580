INSERT INTO redeliver.redeliver_edits (message_id, actor, at, generation, differences)
SELECT *
FROM unnest($1, $2, $3, $4, $5)
