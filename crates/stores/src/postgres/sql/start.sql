UPDATE redeliver.redeliver_messages SET started_at = $3
WHERE id = $1 AND fence = $2 AND claim IS NOT NULL
