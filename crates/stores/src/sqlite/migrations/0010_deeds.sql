-- What people did, by who did it, what it was and to what, the newest first: a row's number stands at the end of every index.
CREATE INDEX redeliver_audit_actor ON redeliver_audit (actor);
CREATE INDEX redeliver_audit_action ON redeliver_audit (action);
CREATE INDEX redeliver_audit_subject ON redeliver_audit (subject);
