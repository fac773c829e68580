SELECT actor, action, subject, at
FROM redeliver_audit
ORDER BY number DESC
LIMIT ?1
