SELECT message_id FROM redeliver_keys WHERE key = ?1 AND workspace = ?2
