SELECT m.*, c.target, c.attributes, c.headers, c.content_type, c.bytes
FROM redeliver_messages AS m INDEXED BY redeliver_suspects
LEFT JOIN redeliver_contents AS c ON c.number = m.number
WHERE m.route = ?1 AND m.lane = ?2 AND m.suspect_at <= ?3
ORDER BY m.suspect_at, m.id
LIMIT ?4
