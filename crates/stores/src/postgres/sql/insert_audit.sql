INSERT INTO redeliver.redeliver_audit (actor, action, subject, at, detail)
SELECT *
FROM unnest($1, $2, $3, $4, $5)
