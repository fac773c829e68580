SELECT count(*) FROM redeliver_instances WHERE silent_at > ?1
