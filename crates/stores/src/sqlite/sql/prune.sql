SELECT number, id, workspace, key, state, attempts_before, attempts, generation, possible_duplicates, fence
FROM redeliver_messages INDEXED BY redeliver_put_away
WHERE route = ?1 AND put_away_at < ?2
ORDER BY put_away_at
LIMIT ?3
