SELECT * FROM redeliver.redeliver_messages WHERE id = ANY ($1)
