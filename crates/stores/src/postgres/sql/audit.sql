SELECT actor, action, subject, at, detail
FROM redeliver.redeliver_audit
ORDER BY number DESC
LIMIT $1
