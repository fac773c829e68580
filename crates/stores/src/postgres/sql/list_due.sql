-- What waits and whose time has come by $6. Two kinds, because each is in an index of its own.
(
    SELECT *
    FROM redeliver.redeliver_messages
    WHERE ready_at <= $6
        AND ($1 IS NULL OR id < $1)
        AND ($2 IS NULL OR workspace = $2)
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
    ORDER BY id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT *
    FROM redeliver.redeliver_messages
    WHERE suspect_at <= $6
        AND ($1 IS NULL OR id < $1)
        AND ($2 IS NULL OR workspace = $2)
        AND ($3 IS NULL OR route = $3)
        AND ($5 IS NULL OR lane = $5)
    ORDER BY id DESC
    LIMIT $4
)
ORDER BY id DESC
LIMIT $4
