UPDATE redeliver_prospects
SET paused_at = NULL
WHERE campaign = ?1 AND id = ?2 AND paused_at IS NOT NULL
