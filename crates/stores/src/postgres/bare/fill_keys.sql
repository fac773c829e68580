INSERT INTO redeliver.redeliver_keys (key, workspace, message_id)
SELECT key, workspace, id
FROM redeliver.redeliver_messages
WHERE key IS NOT NULL
