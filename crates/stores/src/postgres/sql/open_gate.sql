DELETE FROM redeliver.redeliver_gates WHERE key = $1 AND version = $2
