DELETE FROM redeliver_instances WHERE id = ?1
