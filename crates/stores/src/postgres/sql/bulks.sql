SELECT version, bulk
FROM redeliver.redeliver_bulks
ORDER BY id DESC
LIMIT $1
