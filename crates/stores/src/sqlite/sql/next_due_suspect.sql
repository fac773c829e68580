SELECT due_at
FROM redeliver_messages INDEXED BY redeliver_suspects
WHERE route = ?1 AND lane = ?2
    AND state = 0 AND parked_for IS NULL AND losses > 0
ORDER BY due_at
LIMIT 1
