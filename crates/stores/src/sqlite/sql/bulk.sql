SELECT version, bulk
FROM redeliver_bulks
WHERE id = ?1
