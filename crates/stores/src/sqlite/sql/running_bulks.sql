SELECT version, bulk
FROM redeliver_bulks
WHERE id < ?1 AND json_extract(bulk, '$.standing') = 'running'
ORDER BY id DESC
LIMIT ?2
