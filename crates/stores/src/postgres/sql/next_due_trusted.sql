SELECT ready_at
FROM redeliver.redeliver_messages
WHERE route = $1 AND lane = $2 AND ready_at IS NOT NULL
ORDER BY ready_at
LIMIT 1
