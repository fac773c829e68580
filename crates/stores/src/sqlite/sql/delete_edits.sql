DELETE FROM redeliver_edits WHERE message_id = ?1
