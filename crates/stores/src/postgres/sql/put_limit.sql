UPDATE redeliver.redeliver_limits
SET free_at_us = $2, gap_us = $3
WHERE destination = $1
