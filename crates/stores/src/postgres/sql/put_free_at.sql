UPDATE redeliver.redeliver_senders SET free_at = $3 WHERE workspace = $1 AND sender = $2
