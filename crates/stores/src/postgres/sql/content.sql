SELECT target, attributes, headers, content_type, bytes
FROM redeliver.redeliver_contents
WHERE id = $1
