SELECT version, bulk
FROM redeliver.redeliver_bulks
WHERE id = $1
