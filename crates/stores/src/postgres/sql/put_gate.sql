UPDATE redeliver.redeliver_gates SET
    version = version + 1,
    since = $3,
    reason = $4,
    closed = $5
WHERE key = $1 AND version = $2
