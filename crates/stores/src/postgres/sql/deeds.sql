SELECT number, actor, action, subject, at, detail
FROM redeliver.redeliver_audit
WHERE number < $1
ORDER BY number DESC
LIMIT $2
