SELECT target, attributes, headers, content_type, bytes
FROM redeliver_contents
WHERE number = (SELECT number FROM redeliver_messages WHERE id = ?1)
