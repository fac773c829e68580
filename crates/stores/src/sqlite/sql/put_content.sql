INSERT INTO redeliver_contents (number, target, attributes, headers, content_type, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (number) DO UPDATE SET
    target = excluded.target,
    attributes = excluded.attributes,
    headers = excluded.headers,
    content_type = excluded.content_type,
    bytes = excluded.bytes
