UPDATE redeliver.redeliver_campaigns
SET ledger = $2, last_at = $3, scheduled = scheduled + $4, interruptions = 0
WHERE id = $1 AND state = 'running'
