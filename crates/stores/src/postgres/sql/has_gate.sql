SELECT 1 FROM redeliver.redeliver_gates WHERE key = $1
