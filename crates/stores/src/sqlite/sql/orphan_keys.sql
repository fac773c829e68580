SELECT count(*)
FROM redeliver_keys AS k
WHERE k.ended_state IS NULL
    AND NOT EXISTS (SELECT 1 FROM redeliver_messages AS m WHERE m.id = k.message_id)
