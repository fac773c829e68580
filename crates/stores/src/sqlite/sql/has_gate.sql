SELECT 1 FROM redeliver_gates WHERE key = ?1
