-- Walks back from the newest, or from where the last page ended.
SELECT *
FROM redeliver_messages
WHERE id < ?1
    AND (?2 IS NULL OR workspace = ?2)
    AND (?3 IS NULL OR route = ?3)
    AND (?4 IS NULL OR state = ?4)
    AND (?5 OR dismissed_at IS NULL)
    AND (?7 IS NULL OR lane = ?7)
ORDER BY id DESC
LIMIT ?6
