SELECT number FROM redeliver_messages WHERE id = ?1
