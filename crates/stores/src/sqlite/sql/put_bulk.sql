UPDATE redeliver_bulks
SET version = version + 1, bulk = ?2
WHERE id = ?1 AND version = ?3
