INSERT INTO redeliver_contents (id, target, attributes, headers, content_type, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
