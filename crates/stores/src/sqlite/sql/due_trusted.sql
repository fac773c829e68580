SELECT m.*, c.target, c.attributes, c.headers, c.content_type, c.bytes
FROM redeliver_messages AS m INDEXED BY redeliver_ready
LEFT JOIN redeliver_contents AS c ON c.number = m.number
WHERE m.route = ?1 AND m.lane = ?2 AND m.ready_at <= ?3
ORDER BY m.ready_at, m.id
LIMIT ?4
