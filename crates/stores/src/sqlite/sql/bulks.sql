SELECT version, bulk
FROM redeliver_bulks
WHERE id < ?1
ORDER BY id DESC
LIMIT ?2
