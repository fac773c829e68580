UPDATE redeliver_prospects
SET stopped_for = ?3, paused_at = NULL
WHERE campaign = ?1 AND id = ?2 AND stopped_for IS NULL
