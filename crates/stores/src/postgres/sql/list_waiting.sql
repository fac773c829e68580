-- What waits for its time, which comes after $6, and was tried before or wasn't ($7).
(
    SELECT *
    FROM redeliver.redeliver_messages
    WHERE ready_at > $6
        AND ($1 IS NULL OR id < $1)
        AND ($2 IS NULL OR workspace = $2)
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
        AND (attempts <> 0) = $7
    ORDER BY id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT *
    FROM redeliver.redeliver_messages
    WHERE suspect_at > $6
        AND ($1 IS NULL OR id < $1)
        AND ($2 IS NULL OR workspace = $2)
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
        AND (attempts <> 0) = $7
    ORDER BY id DESC
    LIMIT $4
)
ORDER BY id DESC
LIMIT $4
