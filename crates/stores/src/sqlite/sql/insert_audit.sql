INSERT INTO redeliver_audit (actor, action, subject, at)
VALUES (?1, ?2, ?3, ?4)
