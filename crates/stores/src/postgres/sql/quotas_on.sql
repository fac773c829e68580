SELECT
    q.whose,
    q.name,
    q.used,
    (
        SELECT count(*)
        FROM redeliver.redeliver_quotas AS before
        WHERE before.workspace = q.workspace AND before.whose = q.whose AND before.name = q.name
            AND before.period = 0 AND before.number < q.number AND before.used > 0
    )
FROM redeliver.redeliver_quotas AS q
WHERE q.workspace = $1 AND q.period = 0 AND q.number = $2 AND q.used > 0
ORDER BY q.whose, q.name
