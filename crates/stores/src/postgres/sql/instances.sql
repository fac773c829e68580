SELECT count(*) FROM redeliver.redeliver_instances WHERE silent_at > $1
