SELECT * FROM redeliver.redeliver_messages WHERE id = $1
