INSERT INTO redeliver.redeliver_audit (actor, action, subject, at)
SELECT *
FROM unnest($1, $2, $3, $4)
