DELETE FROM redeliver_attempts WHERE message_id = ?1
