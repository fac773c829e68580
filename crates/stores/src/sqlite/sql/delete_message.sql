DELETE FROM redeliver_messages WHERE id = ?1
