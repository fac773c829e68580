UPDATE redeliver_prospects
SET prospect = ?3
WHERE campaign = ?1 AND id = ?2
