SELECT address, reason, since
FROM redeliver.redeliver_suppressions
WHERE workspace = $1 AND address > $2
ORDER BY address
LIMIT $3
