SELECT id, attributes
FROM redeliver.redeliver_contents
WHERE id = ANY ($1)
