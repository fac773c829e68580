DELETE FROM redeliver_messages WHERE number = ?1
