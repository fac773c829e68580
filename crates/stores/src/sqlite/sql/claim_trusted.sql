SELECT m.*, c.target, c.attributes, c.headers, c.content_type, c.bytes
FROM redeliver_messages AS m INDEXED BY redeliver_due
LEFT JOIN redeliver_contents AS c ON c.id = m.id
WHERE m.route = ?1 AND m.lane = ?2 AND m.due_at <= ?3
    AND m.state = 0 AND m.parked_for IS NULL AND m.losses = 0
ORDER BY m.due_at, m.id
LIMIT ?4
