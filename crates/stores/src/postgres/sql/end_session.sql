DELETE FROM redeliver.redeliver_sessions
WHERE digest = $1 OR expires_at <= $2
