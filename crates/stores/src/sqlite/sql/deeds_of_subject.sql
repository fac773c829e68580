SELECT number, actor, action, subject, at, detail
FROM redeliver_audit
WHERE subject = ?3 AND (?4 IS NULL OR actor = ?4) AND (?5 IS NULL OR action = ?5) AND number < ?1
ORDER BY number DESC
LIMIT ?2
