UPDATE redeliver.redeliver_prospects
SET paused_at = $3
WHERE campaign = $1 AND id = $2 AND stopped_for IS NULL AND paused_at IS NULL
