SELECT message_id, hash, attempts_before, attempts, generation, possible_duplicates, fence
FROM redeliver_keys
WHERE key = ?1 AND workspace = ?2
