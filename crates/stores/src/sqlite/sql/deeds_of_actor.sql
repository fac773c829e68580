SELECT number, actor, action, subject, at, detail
FROM redeliver_audit
WHERE actor = ?3 AND (?4 IS NULL OR action = ?4) AND number < ?1
ORDER BY number DESC
LIMIT ?2
