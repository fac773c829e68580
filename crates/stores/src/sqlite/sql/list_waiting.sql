-- What waits for its time: what is due by ?6 if ?7 says so; otherwise what isn't, and was or wasn't tried before (?8).
SELECT *
FROM (
    SELECT *
    FROM redeliver_messages INDEXED BY redeliver_ready
    WHERE ready_at IS NOT NULL
    UNION ALL
    SELECT *
    FROM redeliver_messages INDEXED BY redeliver_suspects
    WHERE suspect_at IS NOT NULL
) AS waiting
WHERE id < ?1
    AND (?2 IS NULL OR workspace = ?2)
    AND (?3 IS NULL OR route = ?3)
    AND (?5 IS NULL OR lane = ?5)
    AND (due_at <= ?6) = ?7
    AND (?7 OR (attempts > 0) = ?8)
ORDER BY id DESC
LIMIT ?4
