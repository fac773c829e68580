SELECT attributes
FROM redeliver_contents
WHERE id = ?1
