UPDATE redeliver.redeliver_quotas
SET used = used - 1
WHERE workspace = $1 AND whose = $2 AND name = $3 AND period = $4 AND number = $5 AND used > 0
