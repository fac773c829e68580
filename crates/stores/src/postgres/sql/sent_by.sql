SELECT
    number,
    used
FROM redeliver.redeliver_quotas
WHERE workspace = $1 AND whose = 1 AND name = $2 AND period = 0 AND used > 0
ORDER BY number
