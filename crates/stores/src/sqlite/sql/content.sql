SELECT target, attributes, headers, content_type, bytes
FROM redeliver_contents
WHERE id = ?1
