SELECT actor, at, generation, differences
FROM redeliver_edits
WHERE message_id = ?1
ORDER BY number
