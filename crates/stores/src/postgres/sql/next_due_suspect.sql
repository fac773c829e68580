SELECT suspect_at
FROM redeliver.redeliver_messages
WHERE route = $1 AND lane = $2 AND suspect_at IS NOT NULL
ORDER BY suspect_at
LIMIT 1
