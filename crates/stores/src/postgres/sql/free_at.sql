SELECT free_at FROM redeliver.redeliver_senders WHERE workspace = $1 AND sender = $2
