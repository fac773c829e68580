-- What people did, by who did it, what it was and to what, the newest first.
CREATE INDEX redeliver_audit_actor ON redeliver.redeliver_audit (actor, number);
CREATE INDEX redeliver_audit_action ON redeliver.redeliver_audit (action, number);
CREATE INDEX redeliver_audit_subject ON redeliver.redeliver_audit (subject, number);
