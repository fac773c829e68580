INSERT INTO redeliver_audit (actor, action, subject, at, detail)
VALUES (?1, ?2, ?3, ?4, ?5)
