DELETE FROM redeliver.redeliver_instances WHERE id = $1
