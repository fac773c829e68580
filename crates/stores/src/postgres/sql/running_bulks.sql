SELECT version, bulk
FROM redeliver.redeliver_bulks
WHERE id < $1 AND bulk::json ->> 'standing' = 'running'
ORDER BY id DESC
LIMIT $2
