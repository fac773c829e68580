SELECT actor, action, subject, at
FROM redeliver.redeliver_audit
ORDER BY number DESC
LIMIT $1
