SELECT *
FROM redeliver_messages INDEXED BY redeliver_handed_off
WHERE state = 2
    AND id < ?1
    AND (?2 IS NULL OR workspace = ?2)
    AND (?3 IS NULL OR route = ?3)
ORDER BY id DESC
LIMIT ?4
