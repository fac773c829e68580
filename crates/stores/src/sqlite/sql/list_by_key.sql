SELECT m.*
FROM redeliver_keys AS k
CROSS JOIN redeliver_messages AS m ON m.id = k.message_id
WHERE k.key = ?7
    AND m.id < ?1
    AND (?2 IS NULL OR m.workspace = ?2)
    AND (?3 IS NULL OR m.route = ?3)
    AND (?4 IS NULL OR m.state = ?4)
    AND (?5 OR m.dismissed_at IS NULL)
    AND (?8 IS NULL OR m.lane = ?8)
ORDER BY m.id DESC
LIMIT ?6
