SELECT id, workspace, key, state, attempts_before, attempts, generation, fence
FROM redeliver_messages INDEXED BY redeliver_put_away
WHERE route = ?1 AND put_away_at < ?2 AND put_away_at IS NOT NULL
ORDER BY put_away_at
LIMIT ?3
