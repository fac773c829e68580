UPDATE redeliver_prospects
SET stopped_for = ?3
WHERE campaign = ?1 AND id = ?2 AND stopped_for IS NULL
