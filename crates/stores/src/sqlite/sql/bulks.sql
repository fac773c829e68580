SELECT version, bulk
FROM redeliver_bulks
ORDER BY id DESC
LIMIT ?1
