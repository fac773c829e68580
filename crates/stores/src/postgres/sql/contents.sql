SELECT target, attributes, headers, content_type, bytes, id
FROM redeliver.redeliver_contents
WHERE id = ANY ($1)
