SELECT count(*)
FROM redeliver_attempts AS a
WHERE NOT EXISTS (SELECT 1 FROM redeliver_messages AS m WHERE m.id = a.message_id)
